package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/sim/cputime"
)

var full = flag.Bool("full", false, "the table for ten million paths, not for a hundred thousand")

// paths are the lines of store paths, which are made as they are read.
type paths struct {
	from, to int
	rest     []byte
}

func (p *paths) Read(b []byte) (int, error) {
	for len(p.rest) < len(b) && p.from < p.to {
		p.rest = append(p.rest, storePath(p.from)...)
		p.rest = append(p.rest, '\n')
		p.from++
	}
	n := copy(b, p.rest)
	p.rest = append(p.rest[:0], p.rest[n:]...)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// storePath returns the i-th one.
func storePath(i int) string {
	r := rand.NewPCG(uint64(i), 1)
	b := []byte("/nix/store/")
	for range 4 {
		x := r.Uint64()
		for range 8 {
			b = append(b, hashes["nix"].letters[x&31])
			x >>= 5
		}
	}
	return string(append(b, "-package-1.2.3"...))
}

// site serves a directory, and counts.
type site struct {
	*httptest.Server
	requests, sent int
}

func serve(t *testing.T, dir string) *site {
	s := &site{}
	files := http.FileServer(http.Dir(dir))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests++
		files.ServeHTTP(&counted{w, s}, r)
	}))
	t.Cleanup(s.Close)
	return s
}

type counted struct {
	http.ResponseWriter
	s *site
}

func (c *counted) Write(b []byte) (int, error) {
	c.s.sent += len(b)
	return c.ResponseWriter.Write(b)
}

// must runs a command and returns what it prints.
func must(t *testing.T, in io.Reader, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(args, in, &out); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return out.String()
}

// TestTable prints the table of the command's comment: go test -v -run Table -full.
func TestTable(t *testing.T) {
	n := 100_000
	if *full {
		n = 10_000_000
	}
	dir, copied := t.TempDir(), t.TempDir()
	began := cputime.Used()
	must(t, &paths{to: n}, "make", "--kind", "nix", dir)
	build := cputime.Used() - began
	m, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	bits := 8 * float64(m.Snapshot.Bytes) / float64(n)
	t.Logf("%d paths at a rate of 1/1000", n)
	t.Logf("make: %.1f s of CPU, of which %.1f s go into making the paths; %.2f bits a path", build.Seconds(), reading(n).Seconds(), bits)
	s := serve(t, dir)
	yes, no := 0, 0
	for i := range 2000 {
		var out bytes.Buffer
		err := run([]string{"has", s.URL, storePath(i)}, nil, &out)
		if err != nil || !strings.HasPrefix(out.String(), "true ") {
			t.Fatalf("a path that is there: %v %s", err, out.String())
		}
		if yes++; run([]string{"has", s.URL, storePath(n + i)}, nil, io.Discard) == nil {
			no++
		}
	}
	t.Logf("has: %d requests and %d bytes for a key, manifest included; %d of %d absent keys are said to be there", s.requests/4000, s.sent/4000, no, yes)
	if no > 12 {
		t.Errorf("%d false positives of %d", no, yes)
	}
	must(t, nil, "follow", s.URL, copied)
	must(t, &paths{from: n / 1000, to: n + n/1000}, "make", "--kind", "nix", dir)
	day := must(t, nil, "follow", s.URL, copied)
	m, err = readManifest(copied)
	if err != nil || len(m.Deltas) != 1 {
		t.Fatalf("%d deltas, %v", len(m.Deltas), err)
	}
	t.Logf("a day in which 0.1 %% are replaced: %s", day)
	if bits > 12.8 || m.Deltas[0].Bytes*10_000 > 50*n {
		t.Errorf("%.2f bits a path, a delta of %d bytes", bits, m.Deltas[0].Bytes)
	}
}

// reading returns the time for making n paths, which is no part of the command.
func reading(n int) time.Duration {
	began := cputime.Used()
	io.Copy(io.Discard, &paths{to: n})
	return cputime.Used() - began
}

// TestFollow: whoever follows has the server's files, byte for byte, by deltas as long as these lead on, and is followed.
func TestFollow(t *testing.T) {
	dir, copied, second := t.TempDir(), t.TempDir(), t.TempDir()
	s := serve(t, dir)
	if err := run([]string{"follow", s.URL, copied}, nil, io.Discard); err == nil {
		t.Error("nothing is there, and it is followed")
	}
	for day := range 60 {
		must(t, &paths{from: 20 * day, to: 2000 + 20*day}, "make", "--kind", "nix", dir)
		if day%7 == 3 {
			continue // this day is missed
		}
		size := 0
		fmt.Sscan(must(t, nil, "follow", s.URL, copied), &size)
		m, err := readManifest(copied)
		if err != nil {
			t.Fatal(err)
		}
		if day > 0 && (size == 0 || size > m.Snapshot.Bytes/8) {
			t.Errorf("day %d: %d bytes, a snapshot has %d", day, size, m.Snapshot.Bytes)
		}
		same(t, dir, copied, m.Snapshot.Name)
		if before := s.sent; must(t, nil, "follow", s.URL, copied) != "" || s.sent-before > 10_000 {
			t.Errorf("day %d: what is there is fetched again", day)
		}
		other := serve(t, copied)
		must(t, nil, "follow", other.URL, second)
		same(t, dir, second, m.Snapshot.Name)
		other.Close()
	}
	for _, d := range []string{dir, copied, second} {
		if list, _ := os.ReadDir(d); len(list) > 40 {
			t.Errorf("%d files are left in %s", len(list), d)
		}
	}
	must(t, &paths{from: 0, to: 9000}, "make", "--kind", "nix", dir) // more than was planned for: a new epoch
	if m, err := readManifest(dir); err != nil || len(m.Deltas) > 0 || m.Planned != 9000 {
		t.Errorf("%d deltas lead to a filter of %d keys, %v", len(m.Deltas), m.Planned, err)
	}
	must(t, nil, "follow", s.URL, copied)
	must(t, nil, "has", copied, storePath(8999))
}

func same(t *testing.T, a, b, name string) {
	t.Helper()
	one, err := os.ReadFile(filepath.Join(a, name))
	other, wrong := os.ReadFile(filepath.Join(b, name))
	if err != nil || wrong != nil || !bytes.Equal(one, other) {
		t.Errorf("%s differs: %v, %v", name, err, wrong)
	}
}

// TestDamaged: files that are not what the manifest says are refused, and what was there stays.
func TestDamaged(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	must(t, &paths{to: 1000}, "make", "--kind", "nix", dir)
	must(t, nil, "follow", dir, copied)
	must(t, &paths{to: 1001}, "make", "--kind", "nix", dir)
	m, _ := readManifest(dir)
	for _, name := range []string{m.Deltas[0].Name, m.Snapshot.Name} {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range [][]byte{nil, b[:len(b)-1], append([]byte("x"), b[1:]...)} {
			os.WriteFile(path, bad, 0o600)
			for _, to := range []string{copied, t.TempDir()} {
				if err := run([]string{"follow", dir, to}, nil, io.Discard); err == nil && (to == copied) == (name == m.Deltas[0].Name) {
					t.Errorf("%d bytes instead of %d are taken", len(bad), len(b))
				}
			}
		}
		must(t, nil, "has", copied, storePath(999))
		os.WriteFile(path, b, 0o600)
	}
}

// TestKeys: the hash of a line is what counts, wherever it is.
func TestKeys(t *testing.T) {
	sum, hash := strings.Repeat("0123456789abcdef", 4), storePath(1)[len("/nix/store/"):][:32]
	for _, c := range []struct {
		kind, line string
		like       string // "" = an error
	}{
		{"lines", "anything", "anything"},
		{"nix", storePath(1), hash}, {"nix", hash + ".narinfo", hash}, {"nix", "https://cache.example/" + hash + ".narinfo", hash}, {"nix", "/nix/store/short-x", ""}, {"nix", hash + "0", ""},
		{"sha256", "sha256:" + sum, sum}, {"sha256", "blobs/sha256/" + sum, sum}, {"sha256", "/cas/" + sum, sum}, {"sha256", sum + "/1234", sum}, {"sha256", sum[1:], ""}, {"sha256", strings.ToUpper(sum), ""},
		{"x", "x", ""},
	} {
		got, err := keyOf(c.kind, []byte(c.line))
		want, _ := keyOf("lines", []byte(c.like))
		if (err != nil) != (c.like == "") || err == nil && got != want {
			t.Errorf("keyOf(%s, %q) = %v, %v", c.kind, c.line, got, err)
		}
	}
}

// TestMisuse: what a user gets wrong is named.
func TestMisuse(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		in   string
		says string
	}{
		{nil, "", "make DIR"},
		{[]string{"make"}, "", "make DIR"},
		{[]string{"make", dir}, "", "after line 0"},
		{[]string{"make", "--kind", "nix", dir}, storePath(1) + "\nx\n", "line 2"},
		{[]string{"make", "--kind", "x", dir}, "x", `"x" is none`},
		{[]string{"make", "--rate", "2", dir}, "x", "2"},
		{[]string{"has", dir, "x"}, "", "manifest.json"},
		{[]string{"follow", "http://127.0.0.1:1", dir}, "", "127.0.0.1:1"},
	} {
		if err := run(c.args, strings.NewReader(c.in), io.Discard); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.args, err, c.says)
		}
	}
	must(t, strings.NewReader("a\nb\n"), "make", dir)
	var out bytes.Buffer
	if err := run([]string{"has", dir, "a", "c", "b"}, nil, &out); !errors.Is(err, errAbsent) || out.String() != "true a\nfalse c\ntrue b\n" {
		t.Errorf("has: %v, %q", err, out.String())
	}
}
