package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestValidateTries checks that everything that run would need is opened and closed again.
func TestValidateTries(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	args := func(more ...string) []string {
		return append([]string{"validate", "--try", "--name", "a", "--store", filepath.Join(dir, "store"), "--listen", "127.0.0.1:0",
			"--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0"}, more...)
	}
	const good = "The ports, the store and the files are to be had."
	holds(t, words(t, 0, args("--access-log", filepath.Join(dir, "log"))...), good)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("--try leaves %v, %v", left, err)
	}
	empty := t.TempDir() // as a service manager makes it
	holds(t, words(t, 0, args("--store", empty)...), good)
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("--try leaves %v in the store, %v", left, err)
	}
	a := inProcess(t, local(t, "a", "--store", empty))
	if code, _, stderr := call(t, args("--store", empty)...); code != 1 || !strings.Contains(stderr, "--store: ") || !strings.Contains(stderr, "in use") {
		t.Errorf("the store of a peer: %d, %s", code, stderr)
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) < 3 {
		t.Errorf("--try leaves %v of the store of %s, %v", left, a.listen, err)
	}
	missing := []string{"--listen " + taken.Addr().String() + " is in use by another process", "--store: "}
	code, stdout, stderr := call(t, args("--listen", taken.Addr().String(), "--store", filepath.Dir(write(t, "objects", "")))...)
	if code != 1 || !strings.Contains(stderr, missing[0]) || !strings.Contains(stderr, missing[1]) || strings.Contains(stdout, good) {
		t.Errorf("%d, %s%s, want 1 and %q", code, stdout, stderr, missing)
	}
	if code, _, stderr := call(t, args("--json")...); code != 2 || !strings.Contains(stderr, "--json and --try") {
		t.Errorf("--try --json: %d, %q", code, stderr)
	}
}

// validate --explain says which rule decides each setting of a request, by line, without a peer, and what never happens.
func TestValidateExplains(t *testing.T) {
	file := write(t, "peer.yaml", `origin: http://o.test
rules:
  - when: '"session*" in cookie || query["nocache"] == "1"'
    bypass: true
  - path: /shop/*
    key: [cookie.currency]
  - type: image/*
    ttl: 7d
  - ttl: 1s
    stale-if-error: 1d
  - path: /x
    ttl: 5s
`)
	dir := strings.TrimSuffix(file, "peer.yaml")
	args := func(more ...string) []string {
		return append([]string{"validate", "--config", file, "--store", t.TempDir()}, more...)
	}
	holds(t, strings.ReplaceAll(words(t, 0, args("--explain", "/shop/a?nocache=1", "-H", "Cookie: currency=EUR")...), dir, ""),
		"GET http://o.test/shop/a?nocache=1", "2 (peer.yaml:5) key cookie.currency", "1 (peer.yaml:3) bypass", "3 (peer.yaml:7) ttl 168h0m0s, if the answer meets its conditions",
		"4 (peer.yaml:9) ttl 1s", "4 (peer.yaml:9) stale-if-error 24h0m0s")
	if said := words(t, 0, args("--explain", "/a", "-H", "Cookie: id=1")...); strings.Contains(said, "bypass") || !strings.Contains(said, "ttl 1s, not with the cookies of this request") || strings.Contains(said, "ttl 5s") {
		t.Error(said)
	}
	holds(t, words(t, 2, args("--explain", "http://[")...), "--explain")
}
