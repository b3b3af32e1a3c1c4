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
	var said lockedBuffer
	if err := run(t.Context(), []string{"replace", "--admin", p.admin, "--json"}, &said, io.Discard); err != nil || !strings.Contains(said.String(), p.status().Started.Format(time.RFC3339Nano)) {
		t.Errorf("peer replace = %v, %s; the peer runs since %v", err, said.String(), p.status().Started)
	}
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
	told := func(want bool) {
		t.Helper()
		for _, path := range []string{"/healthz", "/readyz"} {
			if _, text := ask(t, p.admin, path, ""); strings.Contains(text, "degraded: upgrade: ") != want || want && !strings.Contains(text, "nonsense") {
				t.Errorf("%s says %q", path, text)
			}
		}
		if _, text := ask(t, p.admin, "/metrics", ""); strings.Contains(text, `peer_degraded{part="upgrade"} 1`) != want {
			t.Errorf("the metric of the upgrade is not %v", want)
		}
	}
	told(true)
	if _, body := ask(t, p.listen, "/1", ""); body != "body" || !p.status().Started.Equal(before) {
		t.Errorf("after a refused replacement: %q", body)
	}
	if err := run(t.Context(), []string{"replace", "--admin", p.admin}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("peer replace = %v, want what is wrong with the configuration", err)
	}
	if err := os.WriteFile(config, []byte("origin: "+origin.URL+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"replace", "--admin", p.admin}, io.Discard, io.Discard); err != nil {
		t.Errorf("peer replace = %v", err)
	}
	told(false)
	eventually(t, time.Minute, "the other peer knows what this one runs, and since when", func() bool {
		var table lockedBuffer
		err := run(t.Context(), []string{"members", "--admin", other.admin}, &table, io.Discard)
		return err == nil && strings.Count(table.String(), p.status().Started.Local().Format(time.DateTime)) == 1
	})
}

// A peer that is stopped with --drain-delay says so at /readyz, and serves new connections as before, each with its last
// answer, until a balancer has had the time to look. A second signal ends it at once.
func TestDrainingIsSeen(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "body") }))
	defer origin.Close()
	p := spawn(t, local(t, "a", "--origin", origin.URL, "--drain-delay", "1h")...)
	if resp, _ := ask(t, p.admin, "/readyz", ""); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	eventually(t, time.Minute, "/readyz says 503", func() bool {
		resp, text := ask(t, p.admin, "/readyz", "")
		return resp.StatusCode == http.StatusServiceUnavailable && strings.Contains(text, "draining")
	})
	for range 3 {
		if resp, body := ask(t, p.listen, "/", ""); resp.StatusCode != http.StatusOK || body != "body" || !resp.Close {
			t.Errorf("while it drains: %s, %q, closes %v", resp.Status, body, resp.Close)
		}
	}
	if p.stop() == 0 {
		t.Error("the second signal ended nothing")
	}
}
