//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// program returns the path of an installed program, "" if there is none. A test that a flag asks to
// compare with programs fails then.
func program(t *testing.T, name string) string {
	t.Helper()
	for _, at := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(at); err == nil {
			return path
		}
	}
	if *mutated > 0 || *mutations > 0 || *answersOf > 0 || *needProxies {
		t.Fatal(name + " is not installed")
	}
	return ""
}

// startServer runs a program until the test ends, and waits until it listens.
func startServer(t *testing.T, addr string, command ...string) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { cmd.Process.Kill(); <-ended })
	eventually(t, 20*time.Second, command[0]+" listens", func() bool {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%q ended: %v\n%s", command, err, out.String())
		default:
		}
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// startNginx starts an nginx that listens at addr, with directives for its http block.
func startNginx(t *testing.T, addr, directives string) {
	t.Helper()
	startNginxOf(t, addr, "events { }", directives)
}

// startNginxOf is startNginx with an events block.
func startNginxOf(t *testing.T, addr, events, directives string) {
	t.Helper()
	binary := program(t, "nginx")
	if binary == "" {
		t.Skip("nginx is not installed")
	}
	dir, err := os.MkdirTemp("", "nginx")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	conf := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
%[3]s
http {
	access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
%[2]s
}
`, dir, directives, events)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	startServer(t, addr, binary, "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", conf)
}
