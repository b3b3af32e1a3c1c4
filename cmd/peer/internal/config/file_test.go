package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
)

var someNames = map[string]bool{"name": false, "store-size": false, "join": true}

func TestFileMistakes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no mapping":     {"just words\n", "f.yaml:1: want lines of the form key: value"},
		"list":           {"- name\n", "f.yaml:1: want lines of the form"},
		"syntax":         {"name: x\njoin: [\n", "f.yaml:2: "},
		"tab":            {"name: x\n\tjoin: y\n", "f.yaml:2: there is a tab: indent with spaces"},
		"twice":          {"name: x\nname: y\n", `f.yaml:2: mapping key "name" already defined`},
		"unknown":        {"\n# c\nnme: x\n", `f.yaml:3: unknown key "nme", did you mean "name"?`},
		"underscore":     {"store_size: 1GiB\n", `f.yaml:1: unknown key "store_size", did you mean "store-size"?`},
		"upper case":     {"Name: x\n", `f.yaml:1: unknown key "Name", did you mean "name"?`},
		"far":            {"temperature: 5\n", `f.yaml:1: unknown key "temperature"`},
		"null":           {"name:\n", "f.yaml:1: name has no value"},
		"nested":         {"name:\n  first: x\n", "f.yaml:1: name must be plain text"},
		"list for one":   {"name: [a, b]\n", "f.yaml:1: name takes one value, not a list"},
		"nested list":    {"join: [[a]]\n", "f.yaml:1: join must be plain text"},
		"two documents":  {"name: x\n---\nname: y\n", "f.yaml:3: a second document"},
		"alias":          {"name: *x\n", "f.yaml:1: "},
		"deep":           {"name: " + strings.Repeat("[", 101), "f.yaml:1: more than 100 brackets are open"},
		"deep, closed":   {"name:\n" + strings.Repeat("{a: ", 200) + strings.Repeat("}", 200), "f.yaml:2: more than 100 brackets are open"},
		"deep dashes":    {"name:\n" + strings.Repeat("- ", 101) + "a", "f.yaml:2: more than 100 dashes in a line"},
		"many keys":      {manyKeys(101), "f.yaml:101: more than 100 keys that are not known"},
		"merge":          {"<<: {name: x}\n", `f.yaml:1: unknown key "<<"`},
		"anchored value": {"name: &x y\n", "f.yaml:1: name must be plain text"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := parseFile("f.yaml", []byte(c.text), someNames)
			if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("parseFile(%q) = %v, want one line with %q", c.text, err, c.want)
			}
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: x\n", i)
	}
	return b.String()
}

// A long file costs no more than one of that length that means something: what the parser takes quadratic time
// for is refused before. Compared are allocations, of which the parser has some for each step.
func TestFileCost(t *testing.T) {
	const long = maxFile / 8
	known := map[string]bool{"name": false, "rules": true}
	cost := func(text string) float64 {
		return testing.AllocsPerRun(1, func() { parseFile("f.yaml", []byte(text), known) })
	}
	most := 2 * cost("rules:\n"+strings.Repeat("- path: /x\n  bypass: true\n", long/27))
	for name, text := range map[string]string{
		"brackets": "name: " + strings.Repeat("[", long), "braces": "name: " + strings.Repeat("{a: ", long/4), "dashes": "name:\n" + strings.Repeat("- ", long/2),
		"keys": manyKeys(long / 10),
	} {
		if got := cost(text); got > most {
			t.Errorf("%s: %.0f allocations, want at most %.0f", name, got, most)
		}
	}
}

func TestFileValues(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "# only a comment\n": "", "---\n": "", "name: x\n": "x", "name: \"a: b\" # c\n": "a: b", "name: 'x'\n": "x",
		"name: 007\n": "007", "name: 1e3\n": "1e3", "name: yes\n": "yes", "name: true\n": "true", "name: .inf\n": ".inf",
		"---\nname: x\n...\n": "x", "{name: x}\n": "x", "name: \"\"\n": "",
	} {
		entries, errs := parseFile("f.yaml", []byte(text), someNames)
		got := ""
		if e, ok := entries["name"]; ok {
			got = e.values[0]
		}
		if len(errs) > 0 || got != want {
			t.Errorf("parseFile(%q) = %q, %v, want %q", text, got, errs, want)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte("name: x\nstore-size: 10GiB\njoin: [a, 'b']\n"))
	f.Add([]byte("name: |\n  x\n? join\n: - a\n"))
	f.Add([]byte("a: &b [*b]\n<<: *b\n--- {}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		entries, errs := parseFile("f", data, someNames)
		for name, e := range entries {
			if _, ok := someNames[name]; !ok || len(e.values) != 1 && !e.list {
				t.Fatalf("%s is %+v", name, e)
			}
		}
		for _, err := range errs {
			if !strings.HasPrefix(err.Error(), "f:") || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Fatalf("not one line that names its place: %q", err)
			}
		}
	})
}
