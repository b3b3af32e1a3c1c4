package planted_test

import (
	"flag"
	"fmt"
	"go/ast"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
)

var (
	draw     = flag.Int("draw", 0, "name so `many` functions in which faults may be planted")
	drawSeed = flag.String("draw-seed", "1", "of the functions that -draw names")
)

// TestDraw names the functions that a seed draws. Their order is that of a hash of the seed and the function, so
// that it stays when others change. First comes one function of each package, then any.
//
// Not drawn are functions of fewer than five statements, those within others included, and those that only tests,
// demonstrations or experiments call.
func TestDraw(t *testing.T) {
	if *draw == 0 {
		t.Skip("-draw 40 names functions to plant faults in")
	}
	var all []string
	for _, f := range sources(t) {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && statements(fn) >= 5 && !undrawn[f.dir] {
				all = append(all, f.dir+" "+functionName(fn))
			}
		}
	}
	order := func(function string) uint64 {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s %s", *drawSeed, function)
		return h.Sum64() * 0x9e3779b97f4a7c15 >> 1 // FNV leaves names that end alike close together
	}
	slices.SortFunc(all, func(a, b string) int {
		if order(a) < order(b) {
			return -1
		}
		return 1
	})
	seen := map[string]bool{}
	var first, others []string
	for _, f := range all {
		if dir, _, _ := strings.Cut(f, " "); !seen[dir] {
			seen[dir] = true
			first = append(first, f)
		} else {
			others = append(others, f)
		}
	}
	t.Logf("of %d functions in %d packages:\n%s", len(all), len(seen), strings.Join(append(first, others...)[:min(*draw, len(all))], "\n"))
}

// undrawn are the packages of tests, demonstrations and experiments.
var undrawn = map[string]bool{"gossip/memnet": true, "gossip/internal/wire/wiretest": true, "cmd/peer/internal/demo": true, "cmd/peer/internal/replay": true,
	"cmd/peer/internal/origin": true, "gossip/httpcache/diskstore/disktest": true, "cmd/peer/internal/peertls/certtest": true,
	"cmd/peer/internal/proxy/benchfloor": true}

// statements counts the statements of a function.
func statements(fn *ast.FuncDecl) (n int) {
	if fn.Body == nil {
		return 0
	}
	ast.Inspect(fn.Body, func(node ast.Node) bool {
		if s, ok := node.(ast.Stmt); ok {
			if _, block := s.(*ast.BlockStmt); !block {
				n++
			}
		}
		return true
	})
	return n
}

// functionName is like (*Store).Get, or New.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	star, of := "", fn.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		star, of = "*", p.X
	}
	if g, ok := of.(*ast.IndexExpr); ok {
		of = g.X
	}
	name := "?"
	if id, ok := of.(*ast.Ident); ok {
		name = id.Name
	}
	if star == "" {
		return name + "." + fn.Name.Name
	}
	return "(" + star + name + ")." + fn.Name.Name
}
