package internal

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var platforms = flag.String("platforms", "", "check types in cmd/peer for these systems and processors: `windows/amd64,...`")

// TestPlatforms checks that peer compiles for other systems and processors, in seconds: it checks the
// types of all packages and generates no code. Of other modules, and of the standard library, it does
// not check the bodies of functions.
func TestPlatforms(t *testing.T) {
	if *platforms == "" {
		t.Skip("-platforms has no system")
	}
	for target := range strings.SplitSeq(*platforms, ",") {
		t.Run(target, func(t *testing.T) {
			system, processor, _ := strings.Cut(target, "/")
			sizes := types.SizesFor("gc", processor)
			if sizes == nil {
				t.Fatalf("no such processor: %q", processor)
			}
			checked, own := checkedPackages{"unsafe": types.Unsafe}, 0
			for _, p := range packagesFor(t, system, processor, "./cmd/peer") {
				if _, err := checked.check(p, sizes, nil); err != nil {
					t.Errorf("%s: %v", p.ImportPath, err)
				}
				if p.own() {
					own++
				}
			}
			if own == 0 || len(checked) < 100 {
				t.Errorf("checked %d packages, of which %d are of this module", len(checked), own)
			}
		})
	}
}

// A listedPackage is what go list prints.
type listedPackage struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string // of vendored packages
	Module          *struct{ GoVersion string }
}

func (p listedPackage) own() bool { return strings.HasPrefix(p.ImportPath, module) }

// packagesFor lists packages and all that they import; a package comes after its imports.
func packagesFor(t *testing.T, system, processor, packages string) (list []listedPackage) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", packages)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, errs.String())
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		switch err := d.Decode(&p); err {
		case nil:
			list = append(list, p)
		case io.EOF:
			return list
		default:
			t.Fatal(err)
		}
	}
}

// checkedPackages are packages by import path.
type checkedPackages map[string]*types.Package

// check checks a package, whose imports have been checked. info may be nil.
func (c checkedPackages) check(p listedPackage, sizes types.Sizes, info *types.Info) (files []*ast.File, err error) {
	if p.ImportPath == "unsafe" {
		return nil, nil
	}
	set := token.NewFileSet()
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	var errs []error
	config := types.Config{Sizes: sizes, IgnoreFuncBodies: !p.own(), Importer: mappedImporter{c, p.ImportMap}, Error: func(err error) { errs = append(errs, err) }}
	if p.Module != nil {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	c[p.ImportPath], _ = config.Check(p.ImportPath, set, files, info)
	return files, errors.Join(errs...)
}

// A mappedImporter returns packages that have been checked.
type mappedImporter struct {
	checkedPackages
	mapped map[string]string
}

func (m mappedImporter) Import(path string) (*types.Package, error) {
	if to, ok := m.mapped[path]; ok {
		path = to
	}
	if p := m.checkedPackages[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s was not listed before", path)
}
