package planted

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const root = "../../../.."

// A source is a file that is not a test.
type source struct {
	path, dir string // from here, and from the module's root
	text      []byte
	syntax    *ast.File
	files     *token.FileSet
}

func (s *source) offset(at token.Pos) int { return s.files.PositionFor(at, false).Offset }

// sources returns the files that a peer is made of.
func sources(t *testing.T) []source {
	t.Helper()
	if runtime.GOOS == "wasip1" {
		t.Skip("the sources are not here")
	}
	list, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var readSources = sync.OnceValues(func() (list []source, err error) {
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
			s := source{path: path, files: token.NewFileSet()}
			if s.dir, err = filepath.Rel(root, filepath.Dir(path)); err != nil {
				return err
			}
			if s.text, err = os.ReadFile(path); err != nil {
				return err
			}
			s.dir = filepath.ToSlash(s.dir)
			s.syntax, err = parser.ParseFile(s.files, path, s.text, parser.SkipObjectResolution)
			list = append(list, s)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
})

func ownModule(dir string) bool {
	list, _ := filepath.Glob(filepath.Join(dir, "go.mod"))
	return len(list) > 0
}

// TestFaultsApply names the faults that do not fit the code any more: mend them, or drop them with what they break.
func TestFaultsApply(t *testing.T) {
	known := map[string]bool{}
	var all []planting
	for _, f := range faults {
		if known[f.name] {
			t.Errorf("the table has two faults %s", f.name)
		}
		known[f.name] = true
		list, err := f.plant(sources(t))
		if err != nil || len(list) == 0 {
			t.Errorf("a fault does not apply, of %d places: %v", len(f.in), err)
		}
		all = append(all, list...)
		if f.found.test != "" && !isTest(t, f.found.dir(f), f.found.test) {
			t.Errorf("%s: no test in %s has the name %s", f.name, f.found.dir(f), f.found.test)
		}
		for _, p := range f.in {
			for _, text := range []string{p.old, p.new} {
				if got, err := format.Source([]byte(text)); err != nil {
					t.Errorf("%s: `%s` is neither an expression nor whole statements: %v", f.name, text, err)
				} else if string(got) != text {
					t.Errorf("%s: Go prints `%s` as `%s`", f.name, text, got)
				}
			}
		}
	}
	for path, text := range overlay(all) {
		if _, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution); err != nil {
			t.Errorf("with the faults: %v", err)
		}
	}
}

// isTest reports whether a package has each of the tests that -test.run=^(names)$ would run.
func isTest(t *testing.T, dir, names string) bool {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	var all []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	for name := range strings.SplitSeq(names, "|") {
		name, _, _ = strings.Cut(name, "/")
		if !regexp.MustCompile(`(?m)^func (` + name + `)\(\w+ \*testing\.`).Match(all) {
			return false
		}
	}
	return true
}
