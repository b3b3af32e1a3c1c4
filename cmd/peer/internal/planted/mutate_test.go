package planted

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A mutation is one mechanical mistake in a function.
type mutation struct {
	kind string
	edit edit
}

// mutator finds the mutations of a function.
type mutator struct {
	info  *types.Info
	text  []byte
	found []mutation
}

// operators are what others are taken for: a comparison turned, or shifted by one.
var operators = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GTR}, token.LEQ: {token.LSS, token.GEQ},
	token.GTR: {token.GEQ, token.LSS}, token.GEQ: {token.GTR, token.LEQ},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD},
}

// releases are calls that give something back.
var releases = []string{"unlock", "runlock", "close", "done", "stop", "cancel", "release", "free", "put"}

// mutations returns all mutations of a function, of which some do not compile.
func mutations(info *types.Info, text []byte, fn *ast.FuncDecl) []mutation {
	m := mutator{info: info, text: text}
	var look func(node ast.Node) bool
	look = func(node ast.Node) bool {
		for _, s := range statementsIn(node) {
			m.statement(s)
		}
		switch node := node.(type) {
		case *ast.IfStmt:
			m.condition(node.Cond)
			if m.comparesError(node.Cond) {
				m.add("error ignored", node.Cond, "false && ("+m.of(node.Cond)+")")
			}
		case *ast.ForStmt:
			m.condition(node.Cond)
		case *ast.BinaryExpr:
			m.binary(node)
		case *ast.CallExpr:
			if m.reserves(node) {
				return false
			}
			m.arguments(node)
		case *ast.ReturnStmt:
			for _, result := range node.Results {
				if m.isError(result) && m.of(result) != "nil" {
					m.add("error ignored", result, "nil")
				}
			}
		case *ast.SelectorExpr:
			m.constant(node, node.Sel)
			ast.Inspect(node.X, look)
			return false
		case *ast.Ident:
			m.constant(node, node)
		case *ast.BasicLit:
			m.literal(node)
		}
		return true
	}
	ast.Inspect(fn.Body, look)
	return slices.DeleteFunc(m.found, func(f mutation) bool {
		return slices.Equal(words([]byte(f.edit.text)), words(text[f.edit.from:f.edit.to]))
	})
}

// of returns the text of a node.
func (m *mutator) of(node ast.Node) string { return string(m.text[m.at(node.Pos()):m.at(node.End())]) }

func (m *mutator) at(pos token.Pos) int { return files.PositionFor(pos, false).Offset }

func (m *mutator) add(kind string, node ast.Node, text string) {
	m.found = append(m.found, mutation{kind, edit{m.at(node.Pos()), m.at(node.End()), text}})
}

// statement leaves one out.
func (m *mutator) statement(s ast.Stmt) {
	var call *ast.CallExpr
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, _ = s.X.(*ast.CallExpr)
	case *ast.DeferStmt:
		call = s.Call
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return
		}
	case *ast.IfStmt:
		if m.comparesError(s.Cond) {
			return // it is ignored
		}
	case *ast.ReturnStmt:
		if len(s.Results) > 0 {
			return
		}
	case *ast.DeclStmt, *ast.LabeledStmt, *ast.EmptyStmt:
		return
	}
	kind := "statement dropped"
	if call != nil && slices.Contains(releases, strings.ToLower(called(call))) {
		kind = "unlock or close left out"
	}
	m.add(kind, s, "")
}

// called returns the last name of what a call calls.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

func (m *mutator) condition(cond ast.Expr) {
	if cond != nil {
		m.add("condition negated", cond, "!("+m.of(cond)+")")
	}
}

func (m *mutator) binary(b *ast.BinaryExpr) {
	basic, _ := m.typeOf(b.X).Underlying().(*types.Basic)
	if (b.Op == token.ADD || b.Op == token.SUB) && (basic == nil || basic.Info()&types.IsNumeric == 0) {
		return
	}
	for _, other := range operators[b.Op] {
		at := m.at(b.OpPos)
		m.found = append(m.found, mutation{"comparison", edit{at, at + len(b.Op.String()), other.String()}})
	}
}

// arguments are swapped with those that follow, or zeroed.
func (m *mutator) arguments(call *ast.CallExpr) {
	if of := m.info.Types[call.Fun]; of.IsType() || of.IsBuiltin() {
		return
	}
	for i, a := range call.Args {
		if zero := m.zero(a); zero != "" && m.of(a) != zero {
			m.add("argument", a, zero)
		}
		if i+1 < len(call.Args) && types.Identical(m.typeOf(a), m.typeOf(call.Args[i+1])) {
			b := call.Args[i+1]
			between := string(m.text[m.at(a.End()):m.at(b.Pos())])
			m.found = append(m.found, mutation{"argument", edit{m.at(a.Pos()), m.at(b.End()), m.of(b) + between + m.of(a)}})
		}
	}
}

// reserves tells whether a call makes a map or an empty slice: how much room that has changes nothing.
func (m *mutator) reserves(call *ast.CallExpr) bool {
	if called(call) != "make" || !m.info.Types[call.Fun].IsBuiltin() {
		return false
	}
	_, of := m.typeOf(call).Underlying().(*types.Map)
	return of || len(call.Args) == 3 && m.of(call.Args[1]) == "0"
}

// zero returns the zero of an expression's type, as a text; "" = it has none that is short.
func (m *mutator) zero(x ast.Expr) string {
	switch t := m.typeOf(x).Underlying().(type) {
	case *types.Basic:
		switch {
		case t.Info()&types.IsBoolean != 0:
			return "false"
		case t.Info()&types.IsString != 0 && !isProse(m.of(x)):
			return `""`
		case t.Info()&types.IsNumeric != 0:
			return "0"
		}
	case *types.Pointer, *types.Slice, *types.Map, *types.Signature, *types.Interface, *types.Chan:
		return "nil"
	}
	return ""
}

// constant changes an integer that has a name, or true and false.
func (m *mutator) constant(x ast.Expr, name *ast.Ident) {
	c, ok := m.info.Uses[name].(*types.Const)
	if !ok {
		return
	}
	basic, _ := c.Type().Underlying().(*types.Basic)
	switch {
	case basic == nil:
	case c.Parent() == types.Universe && basic.Info()&types.IsBoolean != 0:
		m.add("constant", x, map[string]string{"true": "false", "false": "true"}[c.Name()])
	case c.Type().String() == "time.Duration": // a nanosecond more changes nothing
		m.add("constant", x, "(2 * "+m.of(x)+")")
	case basic.Info()&types.IsInteger != 0:
		m.add("constant", x, "("+m.of(x)+" + 1)")
	}
}

// literal changes one. Prose is left alone.
func (m *mutator) literal(l *ast.BasicLit) {
	switch l.Kind {
	case token.INT, token.FLOAT, token.CHAR:
		m.add("constant", l, "("+l.Value+" + 1)")
	case token.STRING:
		if !isProse(l.Value) {
			m.add("constant", l, map[bool]string{true: `""`, false: `"x"`}[len(l.Value) > 2])
		}
	}
}

// isProse tells whether the text of an expression has words for people.
func isProse(text string) bool {
	return strings.ContainsAny(text, "\"`") && strings.Contains(text, " ")
}

// comparesError tells whether a condition is, or begins with, err != nil.
func (m *mutator) comparesError(cond ast.Expr) bool {
	b, ok := cond.(*ast.BinaryExpr)
	switch {
	case !ok:
		return false
	case b.Op == token.LAND || b.Op == token.LOR:
		return m.comparesError(b.X)
	}
	return b.Op == token.NEQ && m.of(b.Y) == "nil" && m.isError(b.X)
}

func (m *mutator) isError(x ast.Expr) bool {
	return types.Identical(m.typeOf(x), types.Universe.Lookup("error").Type())
}

func (m *mutator) typeOf(x ast.Expr) types.Type {
	return cmp.Or[types.Type](m.info.TypeOf(x), types.Typ[types.Invalid])
}
