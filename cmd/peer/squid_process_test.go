//go:build unix

package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// needSquid makes tests fail, rather than skip, where squid is not installed.
var needSquid = flag.Bool("squid", false, "fail where squid or libfaketime is not installed, instead of skipping")

func missing(t *testing.T, what string) {
	t.Helper()
	if *needSquid {
		t.Fatal(what + " is not installed")
	}
	t.Skip(what + " is not installed")
}

func squidBinary(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"squid", "/usr/sbin/squid"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing(t, "squid")
	return ""
}

// A squidProcess is a real Squid that runs on loopback until the test ends.
type squidProcess struct {
	t     *testing.T
	name  string // in Via and X-Cache
	addr  string
	dir   string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // once ended

	client *http.Client // by way of it
}

// squidSetup configures a Squid.
type squidSetup struct {
	addr  string   // where; see freeAddr
	disk  bool     // with a cache_dir, without which no digest is made
	speed int      // of its clock; 0 = that of ours
	lines []string // more of squid.conf
	whole []string // the squid.conf itself, in which DIR is its directory
}

// siblingLine is the line of squid.conf that makes a peer a sibling, as in SQUID.md.
func siblingLine(addr string, more ...string) string {
	host, port, _ := net.SplitHostPort(addr)
	return strings.Join(append([]string{"cache_peer", host, "sibling", port, "0 no-query no-netdb-exchange name=peer"}, more...), " ")
}

// startSquid starts a Squid and waits until it answers. The test fails if it ends
// by itself.
func startSquid(t *testing.T, s squidSetup) *squidProcess {
	t.Helper()
	binary := squidBinary(t)
	p := &squidProcess{t: t, addr: s.addr, ended: make(chan struct{})}
	if p.addr == "" {
		p.addr = freeAddr(t)
	}
	_, port, _ := net.SplitHostPort(p.addr)
	p.name = "m" + port
	var err error
	if p.dir, err = os.MkdirTemp("", "squid"); err != nil { // not t.TempDir, which another user cannot reach
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(p.dir) })
	conf := filepath.Join(p.dir, "squid.conf")
	if err := os.WriteFile(conf, []byte(p.configure(s)), 0o644); err != nil {
		t.Fatal(err)
	}
	as := unprivileged(t, p.dir)
	if s.disk {
		z := exec.Command(binary, "-N", "-z", "-f", conf)
		z.SysProcAttr = as
		if out, err := z.CombinedOutput(); err != nil {
			t.Fatalf("squid -z: %v\n%s", err, out)
		}
	}
	p.cmd = exec.Command(binary, "-N", "-f", conf)
	p.cmd.SysProcAttr = as
	if s.speed > 1 {
		p.cmd.Env = append(os.Environ(), "LD_PRELOAD="+fakeTime(t), fmt.Sprintf("FAKETIME=+0 x%d", s.speed))
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.ended) }()
	t.Cleanup(p.stop)
	eventually(t, time.Minute, "squid listens", func() bool {
		conn, err := net.Dial("tcp", p.addr)
		if err == nil {
			conn.Close()
		}
		return err == nil || !p.lives()
	})
	p.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		Proxy: by(p.addr), MaxIdleConnsPerHost: 64, DisableCompression: true,
	}}
	t.Cleanup(p.client.CloseIdleConnections)
	return p
}

// configure writes a squid.conf that confines the Squid to its directory and has the lines of
// SQUID.md.
func (p *squidProcess) configure(s squidSetup) string {
	lines := []string{
		"pid_filename none", "icp_port 0", "pinger_enable off", "netdb_filename none", "shutdown_lifetime 0 seconds",
		"coredump_dir DIR", "access_log stdio:DIR/access.log", "cache_log DIR/cache.log", "cache_mem 256 MB", "http_access allow all",
	}
	if s.whole == nil {
		lines = append(lines, "http_port "+p.addr, "visible_hostname "+p.name, "minimum_direct_rtt 0", "minimum_direct_hops 0")
		if s.disk {
			lines = append(lines, "cache_dir ufs DIR/cache 400 16 16", "digest_generation on")
		}
	}
	lines = append(append(lines, s.lines...), s.whole...)
	return strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "DIR", p.dir)
}

// unprivileged is the user that Squid runs as: it refuses to keep running as root.
func unprivileged(t *testing.T, dir string) *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	who, err := user.Lookup("proxy")
	if err != nil {
		if who, err = user.Lookup("nobody"); err != nil {
			t.Fatal(err)
		}
	}
	uid, _ := strconv.ParseUint(who.Uid, 10, 32)
	gid, _ := strconv.ParseUint(who.Gid, 10, 32)
	if err := errors.Join(os.Chown(dir, int(uid), int(gid)), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func fakeTime(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(found) == 0 {
		missing(t, "libfaketime")
	}
	return found[0]
}

// lives reports whether the started process is still running.
func (p *squidProcess) lives() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// stop ends the Squid, and fails the test if it had ended before.
func (p *squidProcess) stop() {
	if !p.lives() {
		p.t.Errorf("squid ended by itself: %v", p.err)
	}
	if p.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(p.dir, "cache.log"))
		p.t.Logf("end of cache.log:\n%s", log[max(0, len(log)-3000):])
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		p.cmd.Process.Kill()
		<-p.ended
	}
}

// A logged is a line of access.log.
type logged struct {
	result, from string // such as TCP_MISS/200 and CD_SIBLING_HIT
	method, url  string
	took         time.Duration
}

// log reads access.log.
func (p *squidProcess) log() (lines []logged) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "access.log"))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 9 {
			continue
		}
		from, _, _ := strings.Cut(f[8], "/")
		ms, _ := strconv.Atoi(f[1])
		lines = append(lines, logged{f[3], from, f[5], f[6], time.Duration(ms) * time.Millisecond})
	}
	return lines
}
