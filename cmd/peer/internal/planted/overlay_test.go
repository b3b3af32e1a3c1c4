package planted

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var out = flag.String("out", "", "write the files with which Go compiles the faults in to this `directory`")

// TestOverlay writes the faults for a command that is not run here.
func TestOverlay(t *testing.T) {
	if *out == "" {
		t.Skip("-out DIRECTORY writes the faults there")
	}
	t.Logf("PLANTED=NAME GOFLAGS=-overlay=%s", withFaults(t, *out, faults).overlay)
}

// writeOverlay writes files with which Go compiles faults in, and returns the file for its flag -overlay. The variable
// PLANTED of the environment then switches one of them on.
func writeOverlay(t *testing.T, dir string, list []planting) string {
	t.Helper()
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for path, text := range overlay(list) {
		if path, err = filepath.Abs(path); err != nil {
			t.Fatal(err)
		}
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// overlay returns the files that have the faults, by their paths. Each function with a fault has a copy for it, which
// replaces it if the fault is switched on: so all faults fit into one program, whatever they change.
func overlay(list []planting) map[string]string {
	files, edits, copies := map[string]string{}, map[*source][]edit{}, map[*source]string{}
	named := map[*ast.FuncDecl]string{} // how its copies are called, with %s for the fault
	for _, p := range list {
		s := p.in
		files[filepath.Join(root, s.dir, "planted_fault.go")] = fmt.Sprintf(variable, s.syntax.Name.Name)
		if named[p.fn] == "" {
			call, e := forward(s, p.fn)
			named[p.fn], edits[s] = call, append(edits[s], e...)
		}
		name := p.fn.Name.Name + "_" + strings.ReplaceAll(p.fault, "-", "_")
		call := fmt.Sprintf(" if plantedFault == %q { %s };", p.fault, strings.ReplaceAll(named[p.fn], "\x00", name))
		edits[s] = append(edits[s], edit{s.offset(p.fn.Body.Lbrace) + 1, s.offset(p.fn.Body.Lbrace) + 1, call})
		changed := append(slices.Clone(p.edits), edit{s.offset(p.fn.Name.Pos()), s.offset(p.fn.Name.End()), name})
		copied := apply(s.text, s.offset(p.fn.Pos()), s.offset(p.fn.End()), changed)
		copies[s] += fmt.Sprintf("\n//line %s:1\n%s\n", p.fault, copied) // the compiler's errors then name the fault
	}
	for s, e := range edits {
		files[s.path] = apply(s.text, 0, len(s.text), e) + copies[s]
	}
	return files
}

const variable = "package %s\n\nimport \"os\"\n\nvar plantedFault = os.Getenv(\"PLANTED\")\n"

// forward returns the call of a copy of a function, whose name is \x00, in the function itself, and what gives names to
// parameters without any.
func forward(s *source, fn *ast.FuncDecl) (call string, edits []edit) {
	names := func(list *ast.FieldList) (names []string) {
		if list == nil {
			return nil
		}
		for _, field := range list.List {
			if len(field.Names) == 0 {
				at := s.offset(field.Type.Pos())
				names = append(names, "planted"+strconv.Itoa(at))
				edits = append(edits, edit{at, at, names[len(names)-1] + " "})
			}
			for _, id := range field.Names {
				name := id.Name
				if at := s.offset(id.Pos()); name == "_" {
					name = "planted" + strconv.Itoa(at)
					edits = append(edits, edit{at, at + 1, name})
				}
				names = append(names, name)
			}
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				names[len(names)-1] += "..."
			}
		}
		return names
	}
	call = "\x00"
	if fn.Type.TypeParams != nil {
		call += "[" + strings.Join(names(fn.Type.TypeParams), ", ") + "]"
	}
	call += "(" + strings.Join(names(fn.Type.Params), ", ") + ")"
	if receiver := names(fn.Recv); len(receiver) > 0 {
		call = receiver[0] + "." + call
	}
	if fn.Type.Results == nil {
		return call + "; return", edits
	}
	return "return " + call, edits
}

// apply returns a part of a text with edits, which do not overlap.
func apply(text []byte, from, to int, edits []edit) string {
	var out strings.Builder
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	for _, e := range edits {
		out.Write(text[from:e.from])
		out.WriteString(e.text)
		from = e.to
	}
	out.Write(text[from:to])
	return out.String()
}
