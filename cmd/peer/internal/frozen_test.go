package internal

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// vectors are the examples of messages that FORMAT.md, CODERS.md and PROTOCOL.md refer to, beside the files in testdata/frozen.
var vectors = []string{
	"arith/testdata/sets.json", "digest/testdata/vectors.json", "gossip/exchange/testdata/vectors.json",
	"gossip/httpcache/engine/testdata/statements.json", "gossip/internal/guard/testdata/membership.json",
	"gossip/internal/guard/testdata/probes.json",
	"gossip/internal/secrets/testdata/packets.json", "gossip/invalidation/testdata/vectors.json", "gossip/rfc9111/testdata/identities.json",
	"gossip/testdata/vectors.json",
}

// TestFrozenFiles compares the bytes of frozen files and vectors with the hashes in .ci/frozen.sha256, which sha256sum -c
// reads as well. So nobody edits or deletes by accident what earlier releases have promised to read and write. Vectors may
// get cases, which a reviewer sees beside their new hash; frozen files never change, not even with -update.
func TestFrozenFiles(t *testing.T) {
	list := filepath.Join(root, ".ci", "frozen.sha256")
	b, err := os.ReadFile(list)
	if err != nil && !(*update && errors.Is(err, fs.ErrNotExist)) {
		t.Fatal(err)
	}
	want, is := map[string]string{}, hashes(t)
	for lines := bufio.NewScanner(strings.NewReader(string(b))); lines.Scan(); {
		sum, file, ok := strings.Cut(lines.Text(), "  ")
		if !ok {
			t.Fatalf("%s: %q", list, lines.Text())
		}
		want[file] = sum
	}
	for file, sum := range want {
		grows := slices.Contains(vectors, file)
		switch {
		case is[file] == "":
			t.Errorf("%s is gone: later releases must read it", file)
		case is[file] != sum && *update && grows:
		case is[file] != sum && grows:
			t.Errorf("%s has changed: cases are added and never altered; then go test ./cmd/peer/internal -run FrozenFiles -update", file)
		case is[file] != sum:
			t.Errorf("%s has changed: a frozen file is never written again; freeze new messages under another name", file)
		}
	}
	var lines strings.Builder
	for _, file := range slices.Sorted(maps.Keys(is)) {
		if want[file] == "" && !*update {
			t.Errorf("%s is not in the list: go test ./cmd/peer/internal -run FrozenFiles -update", file)
		}
		fmt.Fprintf(&lines, "%s  %s\n", is[file], file)
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(list, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// hashes returns the SHA-256 of all vectors and frozen files, by path.
func hashes(t *testing.T) map[string]string {
	sums := make(map[string]string)
	add := func(file string) error {
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		sums[file] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	}
	for _, file := range vectors {
		if err := add(file); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"arith", "digest", "gossip", "cmd", "sim"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			file, _ := filepath.Rel(root, path)
			if file = filepath.ToSlash(file); err != nil || entry.IsDir() || !strings.Contains(file, "/testdata/frozen/") {
				return err
			}
			return add(file)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return sums
}
