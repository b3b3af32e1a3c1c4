package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// local are flags for a peer that does not collide with others.
func local(t *testing.T, name string, more ...string) []string {
	args := []string{"run", "--name", name, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0",
		"--store", filepath.Join(t.TempDir(), name), "--store-size", "64MiB", "--drain", "2s"}
	return append(args, more...)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// taken returns an address at which something listens already.
func taken(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func TestStartSaysAllThatItCannotHave(t *testing.T) {
	listen, admin, gossip := taken(t), taken(t), taken(t)
	file := write(t, "file", "x")
	code, stdout, stderr := call(t, "run", "--name", "a", "--listen", listen, "--admin", admin, "--gossip", gossip,
		"--store", filepath.Dir(file), "--store-size", "64MiB")
	if code != 1 || stdout != "" {
		t.Errorf("peer run = %d, %q, want 1", code, stdout)
	}
	for _, want := range []string{
		"peer: 3 errors:\n", "--listen " + listen + " is in use", "--admin " + admin + " is in use", "--gossip " + gossip + " is in use",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no word of %q in\n%s", want, stderr)
		}
	}
	if entries, _ := os.ReadDir(filepath.Dir(file)); len(entries) > 0 && strings.Contains(stderr, "lock") {
		t.Errorf("the store is still locked")
	}
}

// inProcess runs a peer until the test ends, and returns its addresses.
func inProcess(t *testing.T, args []string) started {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs lockedBuffer
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, args, &out, &errs) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("peer %q = %v", args, err)
		}
	})
	for {
		if s, ok := parseStarted(out.String()); ok {
			return s
		}
		select {
		case err := <-ended:
			ended <- nil
			t.Fatalf("peer %q = %v\n%s", args, err, errs.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestStoreInUse(t *testing.T) {
	args := local(t, "a")
	inProcess(t, args)
	code, _, stderr := call(t, args...)
	if code != 1 || !strings.Contains(stderr, "in use by another process") || !strings.Contains(stderr, "--store") || strings.Contains(stderr, "gossip is up") {
		t.Errorf("second peer on one store = %d, %q", code, stderr)
	}
}

func TestTwoPeersWithOneName(t *testing.T) {
	first := inProcess(t, local(t, "twin"))
	code, _, stderr := call(t, local(t, "twin", "--join", first.gossip)...)
	if want := `--name "twin" is taken: --join ` + first.gossip; code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("second peer of one name = %d, %q, want 1 and %q", code, stderr, want)
	}
}

func TestDifferentSecrets(t *testing.T) {
	one, other := write(t, "one", "0123456789abcdef"), write(t, "other", "0123456789abcdeF")
	first := inProcess(t, local(t, "a", "--secret-file", one))
	for name, more := range map[string][]string{"other": {"--secret-file", other}, "none": nil} {
		code, _, stderr := call(t, local(t, "b", append(more, "--join", first.gossip)...)...)
		if want := "--join " + first.gossip + " refuses this peer: the cluster secrets differ (--secret-file)"; code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("peer with %s secret = %d, %q, want 1 and %q", name, code, stderr, want)
		}
	}
	open := inProcess(t, local(t, "c"))
	code, _, stderr := call(t, local(t, "d", "--secret-file", one, "--join", open.gossip)...)
	if code != 1 || !strings.Contains(stderr, "the cluster secrets differ") {
		t.Errorf("peer with a secret among those without = %d, %q", code, stderr)
	}
}
