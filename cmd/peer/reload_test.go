package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/peertls/certtest"
)

// Certificates for clients may be at new paths after a reload.
func TestReloadOfCertificatesAtNewPaths(t *testing.T) {
	authority, file := certtest.New(t), filepath.Join(t.TempDir(), "peer.yaml")
	configure := func() {
		cert, key := authority.Peer("a", time.Now().Add(time.Hour))
		if err := os.WriteFile(file, []byte("https: 127.0.0.1:0\nhttps-cert: "+cert+"\nhttps-key: "+key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure()
	p := spawn(t, local(t, "a", "--config", file)...)
	configure()
	p.cmd.Process.Signal(syscall.SIGHUP)
	eventually(t, time.Minute, "the log says what changed", func() bool { return strings.Contains(p.stderr.String(), "changed=https-cert,https-key\n") })
	if log := p.stderr.String(); strings.Contains(log, "at the next start") {
		t.Errorf("certificates that are in use wait for the next start:\n%s", log)
	}
}

// A process under a service manager reports its state, and on SIGHUP reloads the settings that can
// be reloaded.
func TestReloadAndServiceManager(t *testing.T) {
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "notify"), filepath.Join(dir, "peer.yaml")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	expect := func(wants ...string) {
		t.Helper()
		manager.SetReadDeadline(time.Now().Add(20 * time.Second))
		buf := make([]byte, 1000)
		for _, want := range wants {
			for n := 0; !bytes.HasPrefix(buf[:n], []byte(want)); {
				if n, err = manager.Read(buf); err != nil {
					t.Fatalf("the service manager waits for %s: %v", want, err)
				}
			}
		}
	}
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "200000")
	certs := certtest.New(t)
	certificate := func(cert, key string) {
		t.Helper()
		if err := errors.Join(os.Rename(cert, filepath.Join(dir, "cert")), os.Rename(key, filepath.Join(dir, "key"))); err != nil {
			t.Fatal(err)
		}
	}
	certificate(certs.Peer("a", time.Now().Add(time.Hour)))
	configure("store-size: 64MiB\ndrain: 2s\n")
	p := spawn(t, "run", "--config", file, "--tls-cert", filepath.Join(dir, "cert"), "--tls-key", filepath.Join(dir, "key"), "--tls-ca", certs.File, "--name", "a", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--gossip", "127.0.0.1:0", "--store", filepath.Join(dir, "store"))
	expect("READY=1\nSTATUS=serving as a", "WATCHDOG=1", "WATCHDOG=1")

	already := 0 // of the log, which comes by another way than READY
	logged := func(want string) string {
		t.Helper()
		eventually(t, time.Minute, "the log has "+want, func() bool { return strings.Contains(p.stderr.String()[already:], want) })
		return p.stderr.String()[already:]
	}
	reload := func(want string, not ...string) {
		t.Helper()
		already = len(p.stderr.String())
		p.cmd.Process.Signal(syscall.SIGHUP)
		expect("RELOADING=1\nMONOTONIC_USEC=", "READY=1")
		log := logged(want)
		if slices.ContainsFunc(not, func(s string) bool { return strings.Contains(log, s) }) {
			t.Errorf("want none of %q in\n%s", not, log)
		}
	}
	reload("changed=nothing")
	configure("store-size: 48MiB\ndrain: 2s\n")
	reload("changed=store-size\n") // and the default of objects follows
	certificate(certs.Peer("a", time.Now().Add(2*time.Hour)))
	reload("changed=tls-cert\n")

	configure("store-size: 32MiB\ndrain: 1s\nlog-level: debug\nobjects: 77\n")
	p.cmd.Process.Signal(syscall.SIGHUP)
	expect("RELOADING=1\nMONOTONIC_USEC=", "READY=1")
	if got := p.status().Store.MaxBytes; got != 32<<20 {
		t.Errorf("the store may use %d bytes, want 32 MiB", got)
	}
	logged("changed=store-size,objects,log-level,drain")

	configure("store-size: 16MiB\ndrain: soon\n")
	p.cmd.Process.Signal(syscall.SIGHUP)
	expect("RELOADING=1", "READY=1")
	logged(`drain \"soon\" is not a time`)
	if got := p.status().Store.MaxBytes; got != 32<<20 {
		t.Errorf("a configuration with a mistake: the store may use %d bytes\n%s", got, p.stderr.String())
	}
	if code := p.stop(); code != 0 {
		t.Errorf("the peer ended with %d\n%s", code, p.stderr.String())
	}
	expect("STOPPING=1")
}

// A failing reload is not applied in part: one mistake leaves all settings unchanged. The access
// log is reopened in any case, as log rotation expects, or an error says that it is not.
func TestReloadIsWhole(t *testing.T) {
	dir := t.TempDir()
	file, secret, logs := filepath.Join(dir, "peer.yaml"), filepath.Join(dir, "secret"), filepath.Join(dir, "logs")
	configure := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(logs, "access.log")
	configure(secret, "the first secret of all\n")
	good := "secret-file: " + secret + "\naccess-log: " + path + "\n"
	configure(file, good+"store-size: 64MiB\n")
	p := spawn(t, "run", "--config", file, "--name", "a", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0", "--store", filepath.Join(dir, "store"))
	for _, c := range []struct {
		name, file, secret string
		before             func() error
		want               string
		size               int64
		reopened           bool
	}{
		{"a mistake in a rule", good + "store-size: 48MiB\nrules:\n  - ttl: soon\n", "the first secret of all\n", nil, `"soon\" is not a time`, 64 << 20, true},
		{"a step of the secrets left out", good + "store-size: 48MiB\n", "another secret of them\n", nil, "a step is left out", 64 << 20, true},
		{"a store larger than there are", good + "store-size: 2048TiB\n", "the first secret of all\n", nil, "is too large", 64 << 20, true},
		{"no place for the access log", good + "store-size: 48MiB\n", "the first secret of all\n", func() error { return os.Rename(logs, logs+".old") },
			"cannot be made: its directory", 64 << 20, false},
	} {
		os.Remove(path)
		if c.before != nil {
			if err := c.before(); err != nil {
				t.Fatal(err)
			}
		}
		configure(file, c.file)
		configure(secret, c.secret)
		already := len(p.stderr.String())
		p.cmd.Process.Signal(syscall.SIGHUP)
		eventually(t, time.Minute, "the log has "+c.want, func() bool { return strings.Contains(p.stderr.String()[already:], c.want) })
		log := p.stderr.String()[already:]
		if got := p.status().Store.MaxBytes; got != c.size {
			t.Errorf("%s: the store may use %d bytes, want %d", c.name, got, c.size)
		}
		if _, err := os.Stat(path); (err == nil) != c.reopened || strings.Contains(log, "the access log could not be reopened") == c.reopened {
			t.Errorf("%s: the access log: %v\n%s", c.name, err, log)
		}
	}
	if code := p.stop(); code != 0 {
		t.Errorf("the peer ended with %d\n%s", code, p.stderr.String())
	}
}

// Sites and origins change while clients use the peer: nothing is refused or lost. A mistake is shown by
// the command, the metric, the health and the events, until a good configuration is read; a dry run
// changes nothing.
func TestReloadOfSites(t *testing.T) {
	app := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, name)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	file, one, two := filepath.Join(t.TempDir(), "peer.yaml"), app("one"), app("two")
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sites := func(list ...string) (text string) {
		text = "sites:\n"
		for i := 0; i < len(list); i += 2 {
			text += "  - hosts: [" + list[i] + "]\n    origins: [" + list[i+1] + "]\n"
		}
		return text
	}
	configure(sites("one.test", one))
	p := inProcess(t, local(t, "a", "--config", file))
	reload := func(args ...string) (out string, err error) {
		t.Helper()
		var text, errs bytes.Buffer
		err = run(t.Context(), append([]string{"reload", "--admin", p.admin}, args...), &text, &errs)
		return text.String() + errs.String(), err
	}
	read := func(path string) string {
		t.Helper()
		_, body := ask(t, p.admin, path, "localhost")
		return body
	}
	expect := func(host string, status int, want string) {
		t.Helper()
		if r, body := ask(t, p.listen, "/x", host); r.StatusCode != status || status == 200 && body != want {
			t.Errorf("%s: %s %q, want %d %q", host, r.Status, body, status, want)
		}
	}
	expect("one.test", 200, "one")
	var load sync.WaitGroup
	done := make(chan struct{})
	load.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if r, body := ask(t, p.listen, fmt.Sprint("/", i%50), "one.test"); r.StatusCode != 200 || body != "one" {
				t.Errorf("under load: %s %q", r.Status, body)
			}
		}
	})
	configure(sites("one.test", one, "two.test", two) + "objects: 77\njoin: [127.0.0.1:1]\n")
	for range 2 {
		out, err := reload("--dry-run")
		for _, want := range []string{"sites:\n+ ", two, "objects:\n", "+ 77\n", "join:\n"} {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("a dry run lacks %q: %v\n%s", want, err, out)
			}
		}
	}
	expect("two.test", 421, "")
	if out, err := reload(); err != nil || !strings.Contains(out, "sites") {
		t.Errorf("reload: %v\n%s", err, out)
	}
	expect("two.test", 200, "two")
	eventually(t, time.Minute, "the new entry of join is tried", func() bool { return strings.Contains(read("/healthz"), "--join 127.0.0.1:1") })

	configure(sites("one.test", one, "two.test", "ftp://nowhere") + "sibling-max-age: soon\n")
	out, err := reload()
	if err == nil || !strings.Contains(err.Error(), `"soon" is not a time`) || !strings.Contains(err.Error(), "ftp") {
		t.Errorf("a configuration with two mistakes: %v\n%s", err, out)
	}
	for path, want := range map[string]string{"/healthz": "degraded: config: the configuration is not reloaded", "/metrics": "peer_config_last_reload_successful 0",
		"/events.json": "the configuration is not reloaded", "/readyz": "ready"} {
		if text := read(path); !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", path, want, text)
		}
	}
	expect("two.test", 200, "two")
	configure(sites("one.test", one))
	if out, err := reload("--json"); err != nil || !strings.Contains(out, `"setting": "sites"`) {
		t.Errorf("reload: %v\n%s", err, out)
	}
	expect("two.test", 421, "")
	if text := read("/metrics"); !strings.Contains(text, "peer_config_last_reload_successful 1") {
		t.Error("a good configuration does not end the alarm")
	}
	close(done)
	load.Wait()
	if out, err := reload(); err != nil || !strings.Contains(out, "Nothing differs") {
		t.Errorf("nothing new: %v\n%s", err, out)
	}
}

// What cannot change while a peer runs is refused, with the reason and the line, and with it all other changes.
func TestReloadRefusesWhatIsFixed(t *testing.T) {
	page, err := os.ReadFile("OPERATING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "the error has the reason:\n")
	list, _, _ = strings.Cut(list, "- whether")
	other := map[string]string{"name": "b", "cluster": "c", "zone": "z", "gossip": "127.0.0.1:1", "advertise": "127.0.0.2", "listen": "127.0.0.1:1", "admin": "127.0.0.1:1",
		"https": "127.0.0.1:1\nhttps-cert: CERT\nhttps-key: KEY", "store": "elsewhere", "log-format": "json", "memory-limit": "1GiB", "memory-size": "1MiB", "max-members": "9",
		"max-connections": "99", "max-header-size": "8KiB", "keep-digests": "none",
		"secret-file": "SECRET", "proxy-protocol": "127.0.0.1/32\norigin: http://127.0.0.1:1", "tls-cert": "CERT\ntls-key: KEY\ntls-ca: CA"}
	for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(list, -1) {
		if other[m[1]] == "" {
			t.Errorf("%s has no other value here", m[1])
		}
	}
	dir, authority := t.TempDir(), certtest.New(t)
	cert, key := authority.Peer("a", time.Now().Add(time.Hour))
	file, secret := filepath.Join(dir, "peer.yaml"), filepath.Join(dir, "secret")
	configure := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.WriteFile(secret, []byte("sixteen bytes and more\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const here = "name: a\nlisten: 127.0.0.1:0\nadmin: 127.0.0.1:0\ngossip: 127.0.0.1:0\nsibling-max-age: 2h\n"
	base := here + "store: " + dir + "/store\n"
	configure(base)
	p := inProcess(t, []string{"run", "--config", file})
	for name, value := range other {
		value = strings.NewReplacer("CERT", cert, "KEY", key, "CA", authority.File, "SECRET", secret).Replace(value)
		kept := strings.Split(base, "\n")
		kept = slices.DeleteFunc(kept, func(line string) bool { return strings.HasPrefix(line, name+":") })
		configure(strings.ReplaceAll(strings.Join(kept, "\n"), "sibling-max-age: 2h", "sibling-max-age: 3h") + name + ": " + value + "\n")
		line := fmt.Sprintf("%s:%d: %s cannot change without a restart: ", file, len(kept), name)
		for _, args := range [][]string{{"--dry-run"}, nil} {
			err := run(t.Context(), append([]string{"reload", "--admin", p.admin}, args...), io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), line) {
				t.Errorf("%s: %v, want %s", name, err, line)
			}
		}
	}
	configure(strings.ReplaceAll(base, "name: a\n", ""))
	if err := run(t.Context(), []string{"reload", "--admin", p.admin}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "--name cannot change") {
		t.Errorf("a name that is left out: %v", err)
	}
	configure(base)
	var out bytes.Buffer
	if err := run(t.Context(), []string{"reload", "--admin", p.admin}, &out, io.Discard); err != nil || out.String() != "Nothing differs from what runs.\n" {
		t.Errorf("the refused settings have left something: %v\n%s", err, out.String())
	}
}
