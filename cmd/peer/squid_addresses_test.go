//go:build linux

package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// The page's command, on the addresses that it has, serves a client on the page's network, and nobody
// beyond it. The test runs again in namespaces of its own, where it may have these addresses.
func TestSquidPagesAddresses(t *testing.T) {
	if os.Getenv("PAGES_ADDRESSES") == "" {
		if _, err := exec.LookPath("ip"); err != nil {
			t.Skip("there is no iproute2")
		}
		cmd := exec.Command(os.Args[0], "-test.run", "^TestSquidPagesAddresses$", "-test.v")
		cmd.Env = append(os.Environ(), "PAGES_ADDRESSES=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
		}
		out, err := cmd.CombinedOutput()
		switch {
		case len(out) == 0 && err != nil:
			t.Skipf("no namespaces: %v", err)
		case err != nil || !strings.Contains(string(out), "--- PASS"):
			t.Errorf("in a namespace: %v\n%s", err, out)
		}
		return
	}
	for _, args := range []string{"link set lo up", "addr add 10.0.0.1/32 dev lo", "addr add 10.0.0.2/32 dev lo", "addr add 10.0.1.2/32 dev lo"} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", args, err, out)
		}
	}
	l, err := net.Listen("tcp", "10.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	app := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })}}
	app.Start()
	defer app.Close()
	command := strings.Fields(strings.ReplaceAll(blocks(t, "sh")[0], "/var/cache/peer", t.TempDir()))
	p := inProcess(t, append(command[1:], "--name", "a"))
	if p.listen != "10.0.0.1:3128" {
		t.Errorf("%q listens at %s", command, p.listen)
	}
	for from, want := range map[string]int{"10.0.0.2": 200, "10.0.1.2": 403} {
		dial := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		client := &http.Client{Transport: &http.Transport{Proxy: by(p.listen), DialContext: dial.DialContext}}
		r, err := client.Get(app.URL + "/")
		if err != nil {
			t.Fatal(err)
		}
		client.CloseIdleConnections()
		if r.Body.Close(); r.StatusCode != want {
			t.Errorf("a client at %s: %s, want %d", from, r.Status, want)
		}
	}
}
