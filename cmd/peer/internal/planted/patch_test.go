package planted

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"slices"
)

// A patch replaces, in a function, an expression, a statement, or statements that follow each other. The place is the
// one that has the words of old, however they are formatted. If new is empty, statements are dropped.
type patch struct {
	dir, function string
	old, new      string
}

// An edit replaces a part of a file, from one offset to another.
type edit struct {
	from, to int
	text     string
}

// A planting is what a fault changes in a function.
type planting struct {
	fault string
	in    *source
	fn    *ast.FuncDecl
	edits []edit
}

// plant finds the places of a fault.
func (f fault) plant(all []source) (list []planting, err error) {
	for _, p := range f.in {
		in, fn, e, err := p.find(all)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if i := slices.IndexFunc(list, func(l planting) bool { return l.fn == fn }); i >= 0 {
			list[i].edits = append(list[i].edits, e)
		} else {
			list = append(list, planting{f.name, in, fn, []edit{e}})
		}
	}
	return list, nil
}

// find returns the function of a patch, its file, and what to change there.
func (p patch) find(all []source) (in *source, fn *ast.FuncDecl, e edit, err error) {
	want, long := words([]byte(p.old)), count(p.old)
	places := map[edit]bool{} // true: of statements
	for i := range all {
		s := &all[i]
		for _, d := range s.syntax.Decls {
			f, ok := d.(*ast.FuncDecl)
			if s.dir != p.dir || !ok || f.Body == nil || functionName(f) != p.function {
				continue
			}
			look := func(first, last ast.Node, statements bool) {
				at := edit{from: s.offset(first.Pos()), to: s.offset(last.End())}
				if slices.Equal(words(s.text[at.from:at.to]), want) {
					in, places[at] = s, places[at] || statements
				}
			}
			fn = f
			ast.Inspect(f.Body, func(node ast.Node) bool {
				list := statementsIn(node)
				for j := range max(0, len(list)-long+1) {
					look(list[j], list[j+long-1], true)
				}
				if x, ok := node.(ast.Expr); ok {
					look(x, x, false)
				}
				return true
			})
		}
	}
	switch {
	case fn == nil:
		return nil, nil, e, fmt.Errorf("%s has no function %s", p.dir, p.function)
	case len(places) != 1:
		return nil, nil, e, fmt.Errorf("%s, %s has `%s` at %d places, want 1", p.dir, p.function, p.old, len(places))
	}
	for at, statements := range places {
		if e, e.text = at, p.new; !statements {
			e.text = "(" + p.new + ")"
		}
	}
	return in, fn, e, nil
}

// statementsIn returns the statements that follow each other directly below a node.
func statementsIn(node ast.Node) []ast.Stmt {
	switch node := node.(type) {
	case *ast.BlockStmt:
		return node.List
	case *ast.CaseClause:
		return node.Body
	case *ast.CommClause:
		return node.Body
	}
	return nil
}

// count returns how many statements a text is; an expression is one.
func count(text string) int {
	text = "package p\nfunc _() {\n" + text + "\n}"
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return 1
	}
	return len(file.Decls[0].(*ast.FuncDecl).Body.List)
}

// words returns the tokens of a text, except those that depend on where its lines end.
func words(text []byte) (list []string) {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(text)), text, nil, 0)
	for {
		_, t, word := s.Scan()
		ends := t == token.RBRACE || t == token.RPAREN || t == token.EOF
		if n := len(list); ends && n > 0 && (list[n-1] == ";" || list[n-1] == ",") {
			list = list[:n-1]
		}
		switch {
		case t == token.EOF:
			return list
		case t == token.SEMICOLON:
			word = ";"
		}
		list = append(list, cmp.Or(word, t.String()))
	}
}
