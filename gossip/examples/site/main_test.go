package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestSite builds the program and runs it twice: what one process has made comes from it at the other, and both end in
// good order.
func TestSite(t *testing.T) {
	program := filepath.Join(t.TempDir(), "site")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var at [4]string // a's and b's for clients, a's and b's for gossip
	for i := range at {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at[i] = l.Addr().String()
		l.Close()
	}
	var processes []*exec.Cmd
	for i, name := range []string{"a", "b"} {
		cmd := exec.CommandContext(t.Context(), program, "-name", name, "-listen", at[i], "-gossip", at[2+i], "-join", at[2])
		cmd.Env, cmd.Stderr = append(os.Environ(), "SECRET=at least 16 bytes, better random"), os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, cmd)
	}
	get := func(i int, path string) string {
		r, err := http.NewRequest(http.MethodGet, "http://"+at[i]+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "site.example"
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err.Error()
		}
		return string(body)
	}
	// Until b knows a and has its digest: each turn makes another page at a.
	for end := time.Now().Add(time.Minute); ; time.Sleep(300 * time.Millisecond) {
		path := "/" + time.Now().Format("150405.000")
		first := get(0, path)
		if first == path+", made by a\n" {
			time.Sleep(time.Second) // as long as a digest takes
			if get(1, path) == first {
				break
			}
		}
		if time.Now().After(end) {
			t.Fatalf("b does not get from a what a has made: %q", first)
		}
	}
	for _, cmd := range processes {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("a process ended with %v", err)
		}
	}
}
