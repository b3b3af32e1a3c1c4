package internal

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// CONTRIBUTING.md has a row for each module that is required and imported, and names
// who imports it.
func TestPageOfModules(t *testing.T) {
	required := requirements(t)
	importers := make(map[string]map[string]bool) // by module: packages, or a command or the cache as a whole
	for dir, paths := range imports(t, root) {
		for _, whole := range []string{"cmd/peer", "gossip/httpcache"} {
			if strings.HasPrefix(dir, whole+"/") {
				dir = whole
			}
		}
		for _, module := range required {
			if slices.ContainsFunc(paths, func(p string) bool { return p == module || strings.HasPrefix(p, module+"/") }) {
				if importers[module] == nil {
					importers[module] = make(map[string]bool)
				}
				importers[module][dir] = true
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([\\w./-]+\\.[\\w./-]+)` \\| ([^|]*) \\| ([^|]{10,}) \\|$").FindAllStringSubmatch(string(page), -1)
	var listed []string
	for _, row := range rows {
		listed = append(listed, row[1])
		if got, want := strings.Join(slices.Sorted(maps.Keys(importers[row[1]])), ", "), strings.ReplaceAll(row[2], "`", ""); sorted(want) != got {
			t.Errorf("CONTRIBUTING.md says that %s is for %s, and it is imported by %s", row[1], want, got)
		}
	}
	slices.Sort(listed)
	if !slices.Equal(listed, required) {
		t.Errorf("CONTRIBUTING.md lists the modules\n%s\nand go.mod requires\n%s", strings.Join(listed, "\n"), strings.Join(required, "\n"))
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
