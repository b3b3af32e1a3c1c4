package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// started is the line that a peer prints when it is up.
type started struct{ name, listen, admin, gossip, https string }

func parseStarted(text string) (s started, ok bool) {
	for line := range strings.Lines(text) {
		f := strings.Fields(strings.ReplaceAll(line, ",", " "))
		if len(f) == 9 {
			f = append(f, "https", "")
		}
		if len(f) == 11 && f[2] == "up:" && f[3] == "listen" && f[5] == "admin" && f[7] == "gossip" {
			return started{f[0], f[4], f[6], f[8], f[10]}, true
		}
	}
	return s, false
}

// A process is a peer in a process of its own.
type process struct {
	started
	t      *testing.T
	cmd    *exec.Cmd
	stderr lockedBuffer
	ended  chan error
}

// spawn starts a peer as a process and waits until it is up. It is killed when
// the test ends.
func spawn(t *testing.T, args ...string) *process {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return spawnCommand(t, exec.Command(binary, args...))
}

func spawnCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, ended: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), asPeer+"=1")
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if s, ok := parseStarted(lines.Text()); ok {
			p.started = s
			go func() { io.Copy(io.Discard, stdout); p.ended <- p.cmd.Wait() }()
			return p
		}
	}
	err = p.cmd.Wait()
	p.ended <- err
	t.Fatalf("peer %q ended: %v\n%s", cmd.Args, err, p.stderr.String())
	return nil
}

// kill ends the process like a crash, and waits for it.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.wait()
}

func (p *process) wait() error {
	err := <-p.ended
	p.ended <- err
	return err
}

// stop ends the process like an operator, and returns its exit code.
func (p *process) stop() int {
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.wait()
	return p.cmd.ProcessState.ExitCode()
}

// stored waits until the peer holds n objects: a request for one of them is then a hit, and joins no fetch.
func (s started) stored(t *testing.T, n int) {
	t.Helper()
	eventually(t, time.Minute, fmt.Sprintf("%s holds %d objects", s.name, n), func() bool {
		status, err := admin.Client(s.admin).Status(t.Context())
		return err == nil && status.Store.Objects == n
	})
}

// status returns p's status. On a busy machine a part of it may be outdated or missing: then it is
// requested again.
func (p *process) status() (s admin.Status) {
	p.t.Helper()
	eventually(p.t, time.Minute, "a status of which no part is late", func() bool {
		var err error
		if s, err = admin.Client(p.started.admin).Status(p.t.Context()); err != nil {
			p.t.Fatalf("%s: %v\n%s", p.name, err, p.stderr.String())
		}
		return len(s.Health.Missing) == 0
	})
	return s
}

// member returns what p knows about another peer, by name.
func (p *process) member(name string) (admin.Member, bool) {
	p.t.Helper()
	for _, m := range p.status().Members {
		if m.Name == name {
			return m, true
		}
	}
	return admin.Member{}, false
}

// eventually waits for a condition that other processes bring about.
func eventually(t *testing.T, limit time.Duration, what string, holds func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	// Less and less often, since to look may cost several peers a status.
	for pause := 5 * time.Millisecond; ; pause = min(pause*5/4, 50*time.Millisecond) {
		time.Sleep(pause)
		if holds() {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// freeAddr returns an address on loopback at which nothing listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	return freeAddrs(t, 1)[0]
}

// freeAddrs returns different addresses on loopback at which nothing listens, by TCP or UDP. They are drawn from the ports
// that no system gives to those who ask for any, so that they stay free until somebody listens again.
func freeAddrs(t *testing.T, n int) (addrs []string) {
	t.Helper()
	for tries := 0; len(addrs) < n; tries++ {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(22_000)))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			defer l.Close() // once there are all
			var u net.PacketConn
			if u, err = net.ListenPacket("udp", addr); err == nil {
				defer u.Close()
				addrs = append(addrs, addr)
			}
		}
		if err != nil && tries > 100 {
			t.Fatal(err)
		}
	}
	return addrs
}
