// Package frozen is for tests that today's code reads what earlier programs wrote.
// A package keeps that in its testdata/frozen, an entry for each release, named like
// it. Entries are written by today's program, on demand, and never again.
//
// Start from [Write] and [Read].
package frozen

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// Dir is where a package keeps its entries.
const Dir = "testdata/frozen"

var name = flag.String("freeze", "", "write testdata/frozen/`NAME`, which must not exist")

// Write returns where a new entry, whose name ends in suffix, is to be written, once;
// its directory is there. It skips the test unless -freeze says that one is wanted.
func Write(t *testing.T, suffix string) (path string) {
	t.Helper()
	if *name == "" {
		t.Skip("only with -freeze NAME")
	}
	path = filepath.Join(Dir, *name+suffix)
	if _, err := os.Lstat(path); err == nil {
		t.Fatalf("%s is there: what is frozen is not written again", path)
	}
	if err := os.MkdirAll(Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Read calls test with the path of each entry, of which there must be one.
func Read(t *testing.T, test func(t *testing.T, path string)) {
	t.Helper()
	entries, err := filepath.Glob(filepath.Join(Dir, "*"))
	if err != nil || len(entries) == 0 {
		t.Fatalf("nothing is frozen: %v", err)
	}
	for _, path := range entries {
		t.Run(filepath.Base(path), func(t *testing.T) { test(t, path) })
	}
}
