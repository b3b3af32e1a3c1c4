package gossip

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestImports keeps the picture of the packages true: what each directory here may
// import besides the standard library.
func TestImports(t *testing.T) {
	const module = "github.com/summarycache/summarycache/"
	allowed := map[string][]string{
		".":        {module + "digest", module + "gossip/exchange", "github.com/hashicorp/memberlist"},
		"exchange": {module + "digest"},
		"memnet":   nil,
	}
	forbidden := map[string][]string{"exchange": {"net", "net/http", "sync", "os"}}
	for dir, list := range allowed {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range f.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				if slices.Contains(forbidden[dir], path) || strings.Contains(path, ".") && !slices.Contains(list, path) {
					t.Errorf("%s imports %s", file, path)
				}
			}
		}
	}
}
