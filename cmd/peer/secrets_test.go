package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Processes change the secret as OPERATING.md says, by the file and SIGHUP, and find each other's
// objects all the time. A skipped step changes nothing.
func TestSecretsChangeBySIGHUP(t *testing.T) {
	const old, fresh = "0123456789abcdef", "fedcba9876543210"
	const objects = 20
	file := filepath.Join(t.TempDir(), "secret")
	t.Setenv("PEER_SECRET_FILE", file)
	write := func(lines ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(old)
	s := newSite(t, objects, 100)
	a := s.peer(t, "a", t.TempDir())
	b := s.peer(t, "b", t.TempDir(), a.gossip)
	s.fill(t, a.listen, 0, objects)
	asked := 0
	ask := func(when string) {
		t.Helper()
		eventually(t, time.Minute, "b has a's digest, "+when, b.knows("a", objects))
		status, err := s.get(t.Context(), b.listen, object(asked))
		if err != nil || !strings.HasPrefix(status, "a; hit") {
			t.Errorf("%s, b got object %d by %q, %v, want a's", when, asked, status, err)
		}
		asked++
	}
	// reload sends SIGHUP to one process after the other, and waits for a word of each.
	reload := func(word string, times int) {
		t.Helper()
		for _, p := range []*process{a, b} {
			p.cmd.Process.Signal(syscall.SIGHUP)
			eventually(t, time.Minute, fmt.Sprintf("%s says %q", p.name, word), func() bool {
				return strings.Count(p.stderr.String(), word) == times
			})
			ask(fmt.Sprintf("%q said by %s", word, p.name))
		}
	}
	const changed = `msg="the secrets have changed"`
	write(fresh)
	reload("--secret-file: ", 1)
	for i, lines := range [][]string{{old, fresh}, {fresh, old}, {fresh}} {
		write(lines...)
		reload(changed, i+1)
	}
	for _, p := range []*process{a, b} {
		if code := p.stop(); code != 0 {
			t.Errorf("%s ended with %d\n%s", p.name, code, p.stderr.String())
		}
	}
}
