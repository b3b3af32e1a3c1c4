package digest

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestImports: this package knows the coder, the checksum, and nothing else of
// the project or of anybody else's.
func TestImports(t *testing.T) {
	allowed := map[string]bool{
		"github.com/summarycache/summarycache/arith":  true,
		"github.com/summarycache/summarycache/digest": true, // the examples
		"github.com/cespare/xxhash/v2":                true,
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") && !allowed[path] {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}
