//go:build unix

package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Whatever an origin sends, all lines of the log have the form of the log.
func TestLogHasOneForm(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				http.ReadRequest(bufio.NewReader(c))
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				time.Sleep(50 * time.Millisecond)
				io.WriteString(c, "more than was asked for")
				io.Copy(io.Discard, c)
			}()
		}
	}()
	p := spawn(t, "run", "--name", "a", "--store", t.TempDir(), "--origin", "http://"+l.Addr().String(), "--log-level", "debug",
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0")
	for begun := time.Now(); !strings.Contains(p.stderr.String(), "an origin sends more than its answers"); time.Sleep(100 * time.Millisecond) {
		resp, err := http.Get("http://" + p.listen + "/")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("the log does not name an origin that sends more than its answers:\n%s", p.stderr.String())
		}
	}
	for line := range strings.Lines(p.stderr.String()) {
		if !strings.HasPrefix(line, "time=") {
			t.Errorf("a line of the log: %s", line)
		}
	}
}

// A peer outlives those who read its log, its output and its access log: the lines are lost.
func TestReadersOfLogsGoAway(t *testing.T) {
	var pipes [2]*os.File // of what the peer writes
	var readers [2]*os.File
	for i := range pipes {
		var err error
		if readers[i], pipes[i], err = os.Pipe(); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0], "run", "--name", "a", "--store", t.TempDir(), "--access-log", "-", "--log-level", "debug",
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), asPeer+"=1")
	cmd.Stdout, cmd.Stderr = pipes[0], pipes[1]
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	var p started
	lines := bufio.NewScanner(readers[0])
	for up := false; !up && lines.Scan(); {
		p, up = parseStarted(lines.Text())
	}
	for i := range pipes {
		pipes[i].Close()
		readers[i].Close()
	}
	for range 3 {
		resp, err := http.Get("http://" + p.listen + "/") // 400, which is logged
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		cmd.Process.Signal(syscall.SIGHUP)
		time.Sleep(1100 * time.Millisecond) // lines are written each second
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended: %v", err)
	}
}
