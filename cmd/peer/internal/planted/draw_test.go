package planted

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"hash/fnv"
	"path/filepath"
	"slices"
	"testing"
)

var (
	draw     = flag.Int("draw", 0, "name so `many` functions in which faults may be planted")
	drawSeed = flag.String("draw-seed", "1", "of the functions that -draw and -mutants draw")
)

// TestDraw names the functions that a seed draws, with a mutation of each.
func TestDraw(t *testing.T) {
	if *draw == 0 {
		t.Skip("-draw 40 names functions to plant faults in")
	}
	for _, m := range drawMutants(t, *draw, *drawSeed) {
		t.Logf("%s\n%s", m, m.diff())
	}
}

// A place is a function in which a fault may be planted.
type place struct {
	in *source
	fn *ast.FuncDecl
}

func (p place) String() string { return p.in.dir + " " + functionName(p.fn) }

// hash orders what is drawn, so that the order stays when other code changes.
func hash(seed, of string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s", seed, of)
	return h.Sum64() * 0x9e3779b97f4a7c15 >> 1 // FNV leaves names that end alike close together
}

// places returns functions in the order that a seed draws. First comes one function of each package, then any.
//
// Not drawn are functions of fewer than five statements, those within others included, those that only tests,
// demonstrations or experiments call, and those that this system's programs do not have.
func places(t *testing.T, seed string) []place {
	t.Helper()
	var all []place
	list, built := sources(t), packages(t)
	for i := range list {
		s := &list[i]
		p := built[module+s.dir]
		if undrawn[s.dir] || p == nil || !slices.Contains(p.GoFiles, filepath.Base(s.path)) {
			continue
		}
		for _, d := range s.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && statements(fn) >= 5 {
				all = append(all, place{s, fn})
			}
		}
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Compare(hash(seed, a.String()), hash(seed, b.String())) })
	seen := map[string]bool{}
	var first, others []place
	for _, p := range all {
		if !seen[p.in.dir] {
			seen[p.in.dir] = true
			first = append(first, p)
		} else {
			others = append(others, p)
		}
	}
	return append(first, others...)
}

// undrawn are the packages of tests, demonstrations and experiments.
var undrawn = map[string]bool{"gossip/memnet": true, "gossip/internal/wire/wiretest": true, "cmd/peer/internal/demo": true, "cmd/peer/internal/replay": true,
	"cmd/peer/internal/origin": true, "cmd/peer/internal/mutation": true, "gossip/httpcache/diskstore/disktest": true, "cmd/peer/internal/peertls/certtest": true,
	"cmd/peer/internal/proxy/benchfloor": true, "cmd/peer/internal/proxy/benchload": true}

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
