package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The peer knows gossip and digest; what they are made of is theirs alone.
func TestImports(t *testing.T) {
	forbidden := []string{"hashicorp/memberlist", "summarycache/arith", "summarycache/sim"}
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			for _, bad := range forbidden {
				if strings.Contains(name, bad) {
					t.Errorf("%s imports %s", path, name)
				}
			}
		}
		return nil
	})
	if err != nil || files < 20 {
		t.Errorf("%d files looked at, %v", files, err)
	}
}
