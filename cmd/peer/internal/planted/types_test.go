package planted

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/summarycache/summarycache/"

// A listed package is what the go command says of one.
type listed struct {
	ImportPath, Dir, Export            string
	Standard                           bool
	GoFiles                            []string // those for this system
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
}

// packages returns the packages of the module and those that they import, by their import paths.
func packages(t *testing.T) map[string]*listed {
	t.Helper()
	all, err := listPackages()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var listPackages = sync.OnceValues(func() (map[string]*listed, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,Standard,GoFiles,Imports,"+
		"TestImports,XTestImports,TestGoFiles,XTestGoFiles", "./...")
	list.Dir, list.Stderr = root, os.Stderr
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all := map[string]*listed{}
	for d := json.NewDecoder(strings.NewReader(string(text))); ; {
		p := &listed{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
})

// importers returns the directories of the packages that import a package, or whose tests do, and have tests.
func importers(all map[string]*listed, dir string) (dirs []string) {
	for path, p := range all {
		imports := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
		tests := len(p.TestGoFiles)+len(p.XTestGoFiles) > 0
		other, ours := strings.CutPrefix(path, module)
		if ours && tests && other != dir && slices.Contains(imports, module+dir) {
			dirs = append(dirs, other)
		}
	}
	slices.Sort(dirs)
	return dirs
}

var files = token.NewFileSet()

// exported reads the types that packages export, each once.
var exported = sync.OnceValue(func() types.Importer {
	return importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		all, err := listPackages()
		for _, path := range []string{path, "vendor/" + path} { // the standard library has some of golang.org/x
			if p := all[path]; p != nil {
				return os.Open(p.Export)
			}
		}
		return nil, fmt.Errorf("no package %s: %w", path, err)
	})
})

// check checks the types of a package, with another text of one file, which it returns.
func check(all map[string]*listed, s *source, text []byte) (*types.Info, *ast.File, error) {
	var file *ast.File
	var syntax []*ast.File
	p := all[module+s.dir]
	for _, name := range p.GoFiles {
		var from any
		if name == filepath.Base(s.path) {
			from = text
		}
		one, err := parser.ParseFile(files, filepath.Join(p.Dir, name), from, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		if syntax = append(syntax, one); from != nil {
			file = one
		}
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	_, err := (&types.Config{Importer: exported()}).Check(module+s.dir, files, syntax, info)
	return info, file, err
}
