//go:build linux

package main

import (
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The street is Debian's programs around peers, each scene in a network, with mounts and processes, of its own:
// addresses and ports are fixed, and what a scene leaves ends with it.
var streetFlag = flag.String("street", "",
	"some: run the scenes with Debian's programs in network namespaces, as root, and skip those of which a program is missing; all: fail then")

const onStreet = "TEST_BINARY_IS_ON_STREET"

// A street is a scene's test, inside its own network.
type street struct {
	*testing.T
	logs  []func() // called if it fails
	peers int      // that have been started
}

// onTheStreet runs a scene in a process of its own, unless this is that process.
func onTheStreet(t *testing.T, scene func(s *street), programs ...string) {
	t.Helper()
	if os.Getenv(onStreet) != "" {
		s := &street{T: t}
		t.Cleanup(func() {
			for _, log := range s.logs {
				if t.Failed() {
					log()
				}
			}
		})
		s.run("mount", "-t", "tmpfs", "none", "/run", "-o", "mode=755")
		s.run("ip", "link", "set", "lo", "up")
		scene(s)
		return
	}
	if *streetFlag == "" {
		t.Skip("runs Debian's programs in network namespaces, as root: -street some")
	}
	for _, name := range append(programs, "unshare", "ip") {
		if _, err := exec.LookPath(name); err != nil && *streetFlag == "all" {
			t.Fatal(name + " is not installed")
		} else if err != nil {
			t.Skip(name + " is not installed")
		}
	}
	t.Parallel()
	runtime.LockOSThread() // its end ends the scene
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
		"--mount-proc",
		os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", map[bool]string{false: "3m",
			true: "10m"}[*long], fmt.Sprint("-long=", *long))
	cmd.Env = append(os.Environ(), onStreet+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	} else if strings.Contains(string(out), "--- SKIP: ") {
		t.Skip(string(out))
	}
	t.Logf("%s", out)
}

// run runs a command to its end.
func (s *street) run(command ...string) string {
	s.Helper()
	return s.finish(exec.CommandContext(s.Context(), command[0], command[1:]...))
}

func (s *street) finish(cmd *exec.Cmd) string {
	s.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%q: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

// A machine is a network namespace. The zero machine is the street's own.
type machine string

// command returns a command on the machine.
func (m machine) command(command ...string) *exec.Cmd {
	if m != "" {
		command = append([]string{"ip", "netns", "exec", string(m)}, command...)
	}
	return exec.Command(command[0], command[1:]...)
}

// machines makes machines.
func (s *street) machines(names ...machine) {
	s.Helper()
	for _, m := range names {
		s.run("ip", "netns", "add", string(m))
		s.finish(m.command("ip", "link", "set", "lo", "up"))
	}
}

// wire makes a bridge, or adds to it, and gives machines an interface at it with addresses: "a 10.0.0.1/24 fd00::1/64".
// The machine "-" is the street itself.
func (s *street) wire(bridge string, ends ...string) {
	s.Helper()
	if exec.Command("ip", "link", "show", bridge).Run() != nil {
		s.run("ip", "link", "add", bridge, "type", "bridge")
		s.run("ip", "link", "set", bridge, "up")
	}
	for _, end := range ends {
		f := strings.Fields(end)
		in, dev := machine(f[0]), bridge
		if in == "-" {
			in = ""
		} else {
			s.run("ip", "link", "add", bridge+f[0], "type", "veth", "peer", "name", bridge, "netns", f[0])
			s.run("ip", "link", "set", bridge+f[0], "master", bridge, "up")
			s.finish(in.command("ip", "link", "set", dev, "up"))
		}
		for _, addr := range f[1:] {
			args := []string{"ip", "addr", "add", addr, "dev", dev}
			if strings.Contains(addr, ":") {
				args = append(args, "nodad")
			}
			s.finish(in.command(args...))
		}
	}
}

// nft applies a ruleset on a machine.
func (s *street) nft(m machine, rules string) {
	s.Helper()
	cmd := m.command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	s.finish(cmd)
}

// peer starts a peer on a machine, at an address and ports of its own: siblings are known by their address.
func (s *street) peer(m machine, name, ip string, more ...string) *process {
	s.Helper()
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	s.peers++
	at := func(port int) string { return net.JoinHostPort(ip, fmt.Sprint(port+10*s.peers)) }
	args := []string{self, "run", "--name", name, "--listen", at(3000), "--admin", at(4000), "--gossip", at(7000),
		"--store", filepath.Join(s.TempDir(), name), "--store-size", "64MiB", "--drain", "1s",
		"--secret-file", s.secret()}
	p := spawnCommand(s.T, m.command(append(args, more...)...))
	s.logs = append(s.logs, func() { s.Logf("%s says:\n%s", name, p.stderr.String()) })
	return p
}

func (s *street) secret() string {
	path := s.file("secret", "a secret of sixteen bytes or more")
	if err := os.Chmod(path, 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

// quiet fails the test if the peer has logged a warning or an error, but with one of these texts.
func (p *process) quiet(but ...string) {
	p.t.Helper()
lines:
	for line := range strings.Lines(p.stderr.String()) {
		if !strings.Contains(line, "level=WARN") && !strings.Contains(line, "level=ERROR") && !strings.Contains(line,
			"panic") || strings.Contains(line, "the admin listener is open") {
			continue
		}
		for _, text := range but {
			if strings.Contains(line, text) {
				continue lines
			}
		}
		p.t.Errorf("%s logs %s", p.name, line)
	}
}

// from gets a URL's path from a peer or server. Its header has the status as "Status".
func (s *street) from(addr, path string, fields ...string) (http.Header, string, error) {
	r, err := http.NewRequestWithContext(s.Context(), "GET", "http://"+addr+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	resp, err := streetClient.Do(r)
	if err != nil {
		return http.Header{}, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	resp.Header.Set("Status", fmt.Sprint(resp.StatusCode))
	return resp.Header, string(body), err
}

var streetClient = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
	DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// gets fails the test unless a request is answered by this status and body.
func (s *street) gets(p *process, path string, status int, body string, fields ...string) http.Header {
	s.Helper()
	h, got, err := s.from(p.listen, path, fields...)
	if err != nil || h.Get("Status") != fmt.Sprint(status) || got != body {
		s.Errorf("%s at %s: %s, %d bytes %.60q (%s), %v; want %d, %d bytes %.60q", path, p.name, h.Get("Status"), len(got),
			got, h.Get("Cache-Status"), err, status, len(body), body)
	}
	return h
}

// A streetOrigin counts its requests by host and path, and answers with a lifetime.
type streetOrigin struct {
	mu    sync.Mutex
	asked map[string]int
	body  func(r *http.Request) string // nil: its address, host and path

	server *http.Server
}

// origin serves at an address of the street.
func (s *street) origin(addr string, body func(r *http.Request) string) *streetOrigin {
	s.Helper()
	o := &streetOrigin{asked: make(map[string]int), body: body}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		s.Fatal(err)
	}
	o.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.asked[r.URL.Path]++
		o.mu.Unlock()
		if w.Header().Get("Cache-Control") == "" {
			w.Header().Set("Cache-Control", cmp.Or(r.URL.Query().Get("cc"), "max-age=600"))
		}
		text := addr + " " + r.Host + r.URL.Path
		if o.body != nil {
			text = o.body(r)
		}
		sum := sha256.Sum256([]byte(text))
		w.Header().Set("Etag", fmt.Sprintf(`"%x"`, sum[:8]))
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	})}
	go o.server.Serve(l)
	s.Cleanup(func() { o.server.Close() })
	return o
}

// count returns how many requests there were for a path, "" = for all.
func (o *streetOrigin) count(path string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if path != "" {
		return o.asked[path]
	}
	for _, k := range o.asked {
		n += k
	}
	return n
}

// noise returns bytes that no coder makes smaller, others for each seed.
func noise(seed byte, n int) string {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b)
	return string(b)
}

// server starts a program of Debian in the foreground on a machine, and waits until it listens.
func (s *street) server(m machine, addr string, command ...string) *exec.Cmd {
	s.Helper()
	cmd := m.command(command...)
	var out lockedBuffer
	// its children, which have them too, end with the scene
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Second
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s.Cleanup(func() { cmd.Process.Kill(); <-ended })
	s.logs = append(s.logs, func() { s.Logf("%s says:\n%s", command, out.String()) })
	eventually(s.T, time.Minute, command[0]+" listens", func() bool {
		select {
		case err := <-ended:
			ended <- err
			s.Fatalf("%q ended: %v\n%s", command, err, out.String())
		default:
		}
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return cmd
}

// file writes a file for other users to read, in the scene's own /run, and returns its path.
func (s *street) file(name, text string) string {
	s.Helper()
	path := filepath.Join("/run/street", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
	return path
}

// nginx starts an nginx with directives for its http block, with environment variables for it. Its access log is at
// /run/street/NAME/access.log, a method, URI, status and what range was asked for in each line.
func (s *street) nginx(name, addr, directives string, env ...string) {
	s.Helper()
	dir := "/run/street/" + name
	conf := s.file(name+"/nginx.conf",
		fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log; events { }
http { log_format l '$request_method $request_uri $status $http_range'; access_log %[1]s/access.log l; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p;
fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
%[2]s
}
`, dir, directives))
	s.server("", addr, append(append([]string{"env"}, env...), "/usr/sbin/nginx", "-p", dir, "-e", dir+"/error.log", "-c",
		conf)...)
}

// lines returns the lines of a file that have a text.
func (s *street) lines(path, text string) (n int) {
	s.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	for line := range strings.Lines(string(all)) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
