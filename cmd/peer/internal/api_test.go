package internal

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the list of promised names, and the page's arrows, anew")

// promised are the packages whose exported names keep their meaning within a major version. All others, of which some
// are public since programs of this module need them, change without notice.
var promised = []string{
	"digest", "digest/feed", "digest/index", "gossip", "gossip/httpcache", "gossip/httpcache/diskstore", "gossip/httpcache/memstore", "gossip/sibling",
}

// TestAPI compares the exported names of the promised packages with the list in the tree, so that a change of what
// others may use is seen as one.
func TestAPI(t *testing.T) {
	var list strings.Builder
	for _, dir := range promised {
		fmt.Fprintf(&list, "%s\n", dir)
		for _, line := range exported(t, dir) {
			fmt.Fprintf(&list, "\t%s\n", line)
		}
	}
	file := filepath.Join(root, ".ci", "api.txt")
	if *update {
		if err := os.WriteFile(file, []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, after := strings.SplitAfter(string(want), "\n"), strings.SplitAfter(list.String(), "\n")
	for _, line := range without(before, after) {
		t.Errorf("gone or changed: %s", line)
	}
	for _, line := range without(after, before) {
		t.Errorf("new or changed: %s", line)
	}
	if t.Failed() {
		t.Log("if this is meant: go test ./cmd/peer/internal -run API -update, and a line in CHANGELOG.md")
	}
}

// without returns the lines of one list that the other has not, or in fewer places.
func without(list, other []string) (rest []string) {
	count := make(map[string]int)
	for _, line := range other {
		count[line]++
	}
	for _, line := range list {
		if count[line]--; count[line] < 0 {
			rest = append(rest, line)
		}
	}
	return rest
}

// exported returns what a package exports, a line for each name: functions and methods with their signatures, fields
// with their types.
func exported(t *testing.T, dir string) (lines []string) {
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, path.Join(module, dir))
	if err != nil {
		t.Fatal(err)
	}
	add := func(prefix string, node any) {
		var text bytes.Buffer
		if err := format.Node(&text, fset, node); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, prefix+strings.Join(strings.Fields(text.String()), " "))
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, name := range v.Names {
				if ast.IsExported(name) {
					lines = append(lines, v.Decl.Tok.String()+" "+name)
				}
			}
		}
	}
	funcs := func(list []*doc.Func) {
		for _, f := range list {
			f.Decl.Body = nil
			add("", f.Decl)
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs)
	for _, of := range p.Types {
		values(of.Consts)
		values(of.Vars)
		funcs(of.Funcs)
		spec := of.Decl.Specs[0].(*ast.TypeSpec)
		kind, members := parts(spec.Type)
		if members == nil {
			add("type ", spec)
		} else {
			lines = append(lines, "type "+of.Name+" "+kind)
			for _, m := range members.List {
				if len(m.Names) == 0 {
					add("embedded in "+of.Name+": ", m.Type)
				}
				for _, name := range m.Names {
					if name.IsExported() {
						add("of "+of.Name+": "+name.Name+" ", m.Type)
					}
				}
			}
		}
		funcs(of.Methods)
	}
	return lines
}

// parts returns the kind of a type that has fields or methods of its own, and these; nil for other types.
func parts(t ast.Expr) (kind string, members *ast.FieldList) {
	switch t := t.(type) {
	case *ast.StructType:
		return "struct", t.Fields
	case *ast.InterfaceType:
		return "interface", t.Methods
	}
	return "", nil
}
