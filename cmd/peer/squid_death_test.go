//go:build unix

package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/squid"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
)

// timed returns how long a Squid's client waits for an object, which it must get.
func (s *site) timed(t *testing.T, q *squidProcess, target string) time.Duration {
	t.Helper()
	began := time.Now()
	if _, err := s.fetch(q.client, target); err != nil {
		t.Error(err)
	}
	return time.Since(began)
}

// A peer whose disk hangs delays a Squid's client by about a second at most.
func TestHangCostsASquidsClientLittle(t *testing.T) {
	s := newSite(t, 20, 100_000) // each in a file of its own
	dir := t.TempDir()
	p := besidesAt(t, dir, "127.0.0.1:0", squid.Config{}, freeAddr(t))
	s.hold(t, p, targets(0, 20))
	q := startSquid(t, squidSetup{lines: []string{siblingLine(p.Addresses().Listen)}})
	s.learn(t, q)
	for i := range 20 {
		hang(t, dir, "GET "+s.url+object(i))
	}
	quickest, slowest := time.Hour, time.Duration(0)
	for i := range 5 {
		took := s.timed(t, q, object(i))
		quickest, slowest = min(quickest, took), max(slowest, took)
	}
	t.Logf("with a disk that hangs, 5 answers took %v to %v", quickest, slowest)
	if quickest < 400*time.Millisecond {
		t.Errorf("an answer took %v: the Squid sent the peer no request", quickest)
	}
	// Twice our patience: a question on an old connection is repeated on a new one.
	if slowest > 1500*time.Millisecond {
		t.Errorf("an answer took %v", slowest)
	}
}

// hang replaces a stored object's file by a pipe without a writer, until the test ends.
func hang(t *testing.T, dir, key string) {
	t.Helper()
	for held, err := range diskstore.Inspect(dir) {
		if err != nil || held.Key != key {
			continue
		}
		file := filepath.Join(dir, held.File)
		if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if f, err := os.OpenFile(file, os.O_RDWR, 0); err == nil {
				f.Close()
			}
		})
		return
	}
	t.Fatalf("no file holds %q", key)
}

// The death of a peer does not delay a Squid's client, nor does its return.
func TestDeathCostsASquidsClientNothing(t *testing.T) {
	const objects = 40
	s := newSite(t, objects, 1000)
	p := s.spawnBeside(t, freeAddr(t))
	q := startSquid(t, squidSetup{lines: []string{siblingLine(p.listen)}})
	s.learn(t, q)
	p.kill()
	var worst time.Duration
	for i := range objects {
		worst = max(worst, s.timed(t, q, object(i)))
	}
	t.Logf("with the peer dead, the slowest of %d answers took %v", objects, worst)
	if worst > time.Second {
		t.Errorf("the slowest of %d answers took %v", objects, worst)
	}
}

// spawnBeside starts a peer, as a process, that holds every object of the site.
func (s *site) spawnBeside(t *testing.T, squid string) *process {
	t.Helper()
	p := spawn(t, "run", "--name", "peer", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0",
		"--store", t.TempDir(), "--squid-peer", squid)
	c := &http.Client{Transport: &http.Transport{Proxy: by(p.listen)}}
	defer c.CloseIdleConnections()
	all := targets(0, len(s.Sizes))
	for i := range probes {
		s.Sizes[probe(i)] = 100
		all = append(all, probe(i))
	}
	s.fetchAll(t, c, all)
	eventually(t, time.Minute, "the peer holds what it fetched", func() bool { return p.status().Store.Listed >= len(all) })
	return p
}

// A frozen peer keeps its connections open and sends nothing: only Squid's read_timeout bounds the
// delay.
func TestFreezeIsBoundedByReadTimeout(t *testing.T) {
	s := newSite(t, 20, 1000)
	p := s.spawnBeside(t, freeAddr(t))
	q := startSquid(t, squidSetup{lines: []string{siblingLine(p.listen), "read_timeout 1 seconds"}})
	s.learn(t, q)
	p.cmd.Process.Signal(syscall.SIGSTOP)
	defer p.cmd.Process.Signal(syscall.SIGCONT)
	took := s.timed(t, q, object(0))
	t.Logf("with the peer stopped and read_timeout 1 second, an answer took %v", took)
	if took > 5*time.Second {
		t.Errorf("an answer took %v", took)
	}
}
