package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The README has a row for each module that is required and imported, and names
// who imports it.
func TestReadmeModules(t *testing.T) {
	required := requirements(t)
	importers := make(map[string]map[string]bool)
	for path, packages := range importsOf(t) {
		for _, module := range required {
			if path == module || strings.HasPrefix(path, module+"/") {
				if importers[module] == nil {
					importers[module] = make(map[string]bool)
				}
				maps.Copy(importers[module], packages)
			}
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `([\\w./-]+\\.[\\w./-]+)` \\| ([^|]*) \\| ([^|]{10,}) \\|$").FindAllStringSubmatch(pageOf(t, "README.md").prose, -1)
	var listed []string
	for _, row := range rows {
		listed = append(listed, row[1])
		if got, want := strings.Join(slices.Sorted(maps.Keys(importers[row[1]])), ", "), strings.ReplaceAll(row[2], "`", ""); sorted(want) != got {
			t.Errorf("README.md says that %s is for %s, and it is imported by %s", row[1], want, got)
		}
	}
	slices.Sort(listed)
	if !slices.Equal(listed, required) {
		t.Errorf("README.md lists the modules\n%s\nand go.mod requires\n%s", strings.Join(listed, "\n"), strings.Join(required, "\n"))
	}
}

func sorted(list string) string {
	names := strings.Split(list, ", ")
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// requirements are go.mod's, those that are only indirect left out.
func requirements(t *testing.T) (modules []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(text), -1) {
		modules = append(modules, m[1])
	}
	slices.Sort(modules)
	return modules
}

// importsOf tells for each imported path which parts of this module import it in what
// is built: a package, or a command as a whole.
func importsOf(t *testing.T) map[string]map[string]bool {
	t.Helper()
	found := make(map[string]map[string]bool)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "examples"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		part := filepath.ToSlash(dir)
		if strings.HasPrefix(part, "cmd/peer/") {
			part = "cmd/peer"
		}
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if found[name] == nil {
				found[name] = make(map[string]bool)
			}
			found[name][part] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
