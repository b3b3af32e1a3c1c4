// Package compare tries the two libraries that could read the conditions of rules, expr and cel-go, on the same three
// conditions. It is a module of its own: only one of them is a dependency of the peer.
//
//	go test -run Mistakes -bench . -benchmem -count 6
//
// On two cores of a Xeon, Go 1.26, load 13, the best of six, one run of three alike:
//
//	                                expr v1.17.8               cel-go v0.32.0
//	three conditions                660 ns, 3 allocations,     850 ns, 6 allocations,
//	                                48 bytes                   96 bytes
//	the same, environment a struct  670 ns, 3 allocations      -
//	modules besides itself          none                       7
//	a program with only net/http    5.8 MB becomes 8.6 MB      5.8 MB becomes 14.7 MB
//	line and column of a mistake    of the first               of all
//	loops                           only by functions, which   only by macros, which
//	                                can be refused             can be refused
//	unknown values (Kleene)         no                         yes
//
// expr was chosen: its text is what the operator writes elsewhere, its mistakes have places, and it brings nothing with it.
// Neither evaluates without allocations, since strings become interfaces, so package rules translates the checked tree of
// expr into functions: that is also where unknown values come from, which a path that some servers take for another needs. At load 35, where the machines above take more, the best of eight:
// a rule with four comparisons 730 ns and no allocation; eight rules without expressions 1.12 µs, and 1.58 µs before:
//
//	go test ./cmd/peer/internal/rules -run '^$' -bench 'ThreeConditions|Unmatched' -benchtime 100ms -count 8
//
// The program grew from 34.18 to 35.31 MB.
package compare

import (
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
)

const (
	inExpr = `method == "GET" && path startsWith "/api/" && query["nocache"] == "1"`
	inCEL  = `method == "GET" && path.startsWith("/api/") && query["nocache"] == "1"`
)

// A request has what the conditions look at.
type request struct {
	Method string            `expr:"method"`
	Path   string            `expr:"path"`
	Query  map[string]string `expr:"query"`
}

func (r *request) ResolveName(name string) (any, bool) {
	switch name {
	case "method":
		return r.Method, true
	case "path":
		return r.Path, true
	case "query":
		return r.Query, true
	}
	return nil, false
}

func (r *request) Parent() cel.Activation { return nil }

var one = &request{"GET", "/api/x", map[string]string{"nocache": "1"}}

func celEnv(t testing.TB) *cel.Env {
	env, err := cel.NewEnv(cel.Variable("method", cel.StringType), cel.Variable("path", cel.StringType),
		cel.Variable("query", cel.MapType(cel.StringType, cel.StringType)))
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func BenchmarkExprOnMap(b *testing.B) {
	env := map[string]any{"method": "", "path": "", "query": map[string]string{}}
	program, err := expr.Compile(inExpr, expr.Env(env), expr.AsBool())
	if err != nil {
		b.Fatal(err)
	}
	var machine vm.VM
	b.ReportAllocs()
	for b.Loop() {
		env["method"], env["path"], env["query"] = one.Method, one.Path, one.Query
		if yes, err := machine.Run(program, env); yes != true || err != nil {
			b.Fatal(yes, err)
		}
	}
}

func BenchmarkExprOnStruct(b *testing.B) {
	program, err := expr.Compile(inExpr, expr.Env(one), expr.AsBool())
	if err != nil {
		b.Fatal(err)
	}
	var machine vm.VM
	b.ReportAllocs()
	for b.Loop() {
		if yes, err := machine.Run(program, one); yes != true || err != nil {
			b.Fatal(yes, err)
		}
	}
}

func BenchmarkCEL(b *testing.B) {
	env := celEnv(b)
	tree, issues := env.Compile(inCEL)
	if issues.Err() != nil {
		b.Fatal(issues.Err())
	}
	program, err := env.Program(tree, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if yes, _, err := program.Eval(one); err != nil || yes.Value() != true {
			b.Fatal(yes, err)
		}
	}
}

// Both name the place of a mistake.
func TestMistakes(t *testing.T) {
	for _, text := range []string{"metod == \"x\"", "method == 1", "method ==\n  \"GET\" && pth == \"\""} {
		_, err := expr.Compile(text, expr.Env(one), expr.AsBool())
		_, issues := celEnv(t).Compile(text)
		if err == nil || issues.Err() == nil || !strings.Contains(err.Error(), ":") {
			t.Errorf("%q: %v, %v", text, err, issues.Err())
			continue
		}
		t.Logf("%q\nexpr: %v\ncel-go: %v", text, err, issues.Err())
	}
}
