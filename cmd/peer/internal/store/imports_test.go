package store

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestImports: the store knows nothing of HTTP, siblings or digests.
func TestImports(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			for _, bad := range []string{"net/http", "summarycache/gossip", "summarycache/digest", "internal/cache", "internal/proxy", "internal/sibling"} {
				if strings.HasSuffix(strings.Trim(i.Path.Value, "`\""), bad) {
					t.Errorf("%s imports %s", name, bad)
				}
			}
		}
	}
}
