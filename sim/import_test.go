package main

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestImports keeps the simulator off the network: only net's value types
// could be wanted here, and none is.
func TestImports(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if path == "net" || path == "net/http" || path == "crypto/tls" || strings.Contains(path, "memberlist") || strings.Contains(path, "summarycache/cmd/") {
				t.Errorf("%s imports %s: sim opens no socket", f.Name(), path)
			}
		}
	}
}
