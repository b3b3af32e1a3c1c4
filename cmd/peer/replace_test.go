//go:build unix

package main

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

var replacements = flag.Int("replacements", 5, "times that TestReplaceRefusesNobody has a program replaced")

// The program of a peer is replaced again and again, as an upgrade does it: no client is refused, the process stays, and
// so does what it holds. A file that can't continue changes nothing.
func TestReplaceRefusesNobody(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		io.WriteString(w, "body")
	}))
	defer origin.Close()
	config := write(t, "peer.yaml", "origin: "+origin.URL+"\n")
	addrs := freeAddrs(t, 2)
	p := spawn(t, local(t, "a", "--config", config, "--gossip", addrs[0], "--join", addrs[1])...)
	other := spawn(t, local(t, "b", "--config", config, "--gossip", addrs[1], "--join", addrs[0])...)
	requests, rest := longestWait(t, p.listen)
	replace := func(wants func() bool) {
		t.Helper()
		n := requests()
		eventually(t, time.Minute, "requests are answered", func() bool { return requests() >= n+200 })
		if err := p.cmd.Process.Signal(syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "the signal is obeyed", wants)
	}
	p.stored(t, 20)
	for range *replacements {
		before := p.status().Started
		replace(func() bool {
			s, err := admin.Client(p.admin).Status(t.Context())
			return err == nil && s.Started.After(before) && s.State == "serving"
		})
	}
	t.Logf("%d requests over %d replacements, the longest took %v", requests(), *replacements, rest())
	if s := p.status(); s.Store.Reloaded != 20 || s.Traffic.OriginFetches != 0 {
		t.Errorf("%d objects were there, %d were fetched again", s.Store.Reloaded, s.Traffic.OriginFetches)
	}
	eventually(t, time.Minute, "the other peer knows what this one holds", other.knows("a", 20))

	if err := os.WriteFile(config, []byte("origin: nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := p.status().Started
	p.cmd.Process.Signal(syscall.SIGUSR2)
	eventually(t, time.Minute, "the log says why", func() bool {
		return strings.Contains(p.stderr.String(), "the program is not replaced") && strings.Contains(p.stderr.String(), "nonsense")
	})
	if _, body := ask(t, p.listen, "/1", ""); body != "body" || !p.status().Started.Equal(before) {
		t.Errorf("after a refused replacement: %q", body)
	}
}
