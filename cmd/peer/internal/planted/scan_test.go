package planted_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

const root = "../../../.."

// A source is a file that is not a test.
type source struct {
	dir    string // from the module's root
	syntax *ast.File
}

// sources returns the files that a peer is made of.
func sources(t *testing.T) (list []source) {
	t.Helper()
	if runtime.GOOS == "wasip1" {
		t.Skip("the sources are not here")
	}
	for _, top := range []string{"arith", "digest", "gossip", "cmd/peer"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || ownModule(path)):
				return fs.SkipDir
			case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			syntax, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			dir, err := filepath.Rel(root, filepath.Dir(path))
			list = append(list, source{filepath.ToSlash(dir), syntax})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func ownModule(dir string) bool {
	list, _ := filepath.Glob(filepath.Join(dir, "go.mod"))
	return len(list) > 0
}

// A place is where code compares planted.Fault with the name of a fault.
type place struct{ dir, function string }

// switches returns the places of all faults, by name.
func switches(t *testing.T) map[string][]place {
	t.Helper()
	found := map[string][]place{}
	for _, f := range sources(t) {
		for _, d := range f.syntax.Decls {
			at := place{dir: f.dir}
			if fn, ok := d.(*ast.FuncDecl); ok {
				at.function = functionName(fn)
			}
			uses := 0
			ast.Inspect(d, func(node ast.Node) bool {
				if isFault(node) {
					uses++
				}
				b, ok := node.(*ast.BinaryExpr)
				if !ok || !isFault(b.X) {
					return true
				}
				if name, ok := b.Y.(*ast.BasicLit); ok && (b.Op == token.EQL || b.Op == token.NEQ) && at.function != "" {
					uses--
					text, _ := strconv.Unquote(name.Value)
					found[text] = append(found[text], at)
				}
				return true
			})
			if uses != 0 {
				t.Errorf("%s, %s: planted.Fault is not just compared with a name, in a function", f.dir, at.function)
			}
		}
	}
	return found
}

// isFault reports whether a node is planted.Fault.
func isFault(node ast.Node) bool {
	s, ok := node.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Fault" {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	return ok && of.Name == "planted"
}

// TestSwitches compares the switches in the code with the table, both ways.
func TestSwitches(t *testing.T) {
	found, known := switches(t), map[string]bool{}
	for _, f := range faults {
		if known[f.name] {
			t.Errorf("the table has two faults %s", f.name)
		}
		known[f.name] = true
		if got, want := len(found[f.name]), max(f.places, 1); got != want {
			t.Errorf("the fault %s is at %d places, want %d: %v", f.name, got, want, found[f.name])
		}
	}
	for name, at := range found {
		if !known[name] {
			t.Errorf("%s, %s: the table has no fault %q", at[0].dir, at[0].function, name)
		}
	}
}
