package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Go code on a page is compiled and run: it is part of an example of a package, or of a program in
// gossip/examples.
func TestPagesGoIsInExamples(t *testing.T) {
	examples := exampleCode(t)
	n := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "go" {
				continue
			}
			n++
			if !strings.Contains(examples, flush(b.text)) {
				t.Errorf("%s:%d: no example has\n%s", p.path, b.line, b.text)
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d blocks of Go found", n)
	}
}

// The caches in gossip/examples are as short as the README says, comments included, each in its
// own module. Commands are longer, and so are kvblocks and layers, which are no caches.
func TestPagesExamplesAreShort(t *testing.T) {
	modules, err := filepath.Glob(filepath.Join(root, "gossip", "examples", "*", "go.mod"))
	if err != nil || len(modules) < 3 {
		t.Fatalf("%d examples, %v", len(modules), err)
	}
	for _, module := range modules {
		files, err := filepath.Glob(filepath.Join(filepath.Dir(module), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") || strings.Contains("\n"+string(text), "\npackage main\n") {
				continue
			}
			lines += strings.Count(string(text), "\n")
		}
		name, most := filepath.Base(filepath.Dir(module)), 99
		if name == "layers" {
			most = 120
		}
		if lines > most && name != "kvblocks" {
			t.Errorf("%s has %d lines, want at most %d", name, lines, most)
		}
	}
}

// exampleCode returns the code of all examples.
func exampleCode(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(name, "."):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go":
			return nil
		case strings.HasPrefix(name, "example") && strings.HasSuffix(name, "_test.go"), strings.Contains(filepath.ToSlash(path), "/gossip/examples/"):
			text, err := os.ReadFile(path)
			all.WriteString(flush(string(text)))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// flush returns code without indentation and without the spaces by which gofmt aligns columns.
func flush(code string) string {
	var out strings.Builder
	for line := range strings.Lines(code) {
		out.WriteString(strings.Join(strings.Fields(line), " "))
		out.WriteString("\n")
	}
	return out.String()
}
