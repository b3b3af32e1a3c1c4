package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var long = flag.Bool("long", false, "build this whole project")

// This test binary is the command as well.
func TestMain(m *testing.M) {
	if os.Getenv("BUILDCACHE_COMMAND") == "" {
		os.Exit(m.Run())
	}
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "buildcache:", err)
		os.Exit(1)
	}
}

const secret = "at least 16 bytes, better random"

// file returns the name of a file with that text.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

var stops = map[*Machine]func(){} // what ends each machine

// start starts a machine and joins it to others.
func start(t *testing.T, name string, change func(*Options), others ...*Machine) *Machine {
	t.Helper()
	o := Options{Listen: "127.0.0.1:0", Address: "127.0.0.1", Name: name, Dir: t.TempDir(), SecretFile: file(t, secret+"\n"), Size: 512}
	for i, m := range others {
		o.Join += strings.Repeat(",", min(i, 1)) + m.Node.Addr()
	}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan *Machine), make(chan error, 1)
	go func() { ended <- serve(ctx, o, func(m *Machine) { ready <- m }) }()
	select {
	case m := <-ready:
		stops[m] = sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(stops[m])
		return m
	case err := <-ended:
		t.Fatal(err)
		return nil
	}
}

// advertised waits until another machine knows that one has an output or entry.
func advertised(t *testing.T, at *Machine, value string) {
	t.Helper()
	for range 1000 {
		if len(at.Node.Candidates(nil, "GET http://value.invalid/?"+value)) > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s is not advertised", value)
}

// told waits until a machine has the digest of all that another holds.
func told(t *testing.T, at, of *Machine) {
	t.Helper()
	for range 1000 {
		for _, m := range at.Node.Members() {
			if m.Name == of.Node.Name() && m.Keys == uint64(of.Node.Holdings().Keys().Len()) {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not get the digest of %s", at.Node.Name(), of.Node.Name())
}

// ask asks a machine as a build does, and returns status and body.
func ask(t *testing.T, m *Machine, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+m.Addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return -1, string(b)
	}
	return resp.StatusCode, string(b)
}

// has reports that a machine answers a GET with a body, and HEAD accordingly.
func has(t *testing.T, m *Machine, path, want string) {
	t.Helper()
	if status, _ := ask(t, m, "HEAD", path, ""); status != 200 {
		t.Errorf("HEAD %s: %d", path, status)
	}
	if status, got := ask(t, m, "GET", path, ""); status != 200 || got != want {
		t.Errorf("GET %s: %d, %d bytes, want %d", path, status, len(got), len(want))
	}
}

// lacks reports that a machine answers 404.
func lacks(t *testing.T, m *Machine, path string) {
	t.Helper()
	for _, method := range []string{"HEAD", "GET"} {
		if status, got := ask(t, m, method, path, ""); status != 404 {
			t.Errorf("%s %s: %d, %.40q", method, path, status, got)
		}
	}
}

// build has the go command build packages with the cache of a machine, and returns what the cache did.
func build(t *testing.T, m *Machine, dir string, args ...string) (took time.Duration, compiled int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append([]string{"build", "-x", "-o", os.DevNull}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "BUILDCACHE_COMMAND=1", "GOFLAGS=-trimpath", "GOCACHEPROG="+self+" go --listen "+m.Addr+" --dir "+t.TempDir())
	var log bytes.Buffer
	cmd.Stderr = &log
	began := time.Now()
	if out, err := cmd.Output(); err != nil {
		t.Fatalf("go build: %v\n%s%.2000s", err, out, log.String())
	}
	return time.Since(began), strings.Count(log.String(), "/compile ")
}
