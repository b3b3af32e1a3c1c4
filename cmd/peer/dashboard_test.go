package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var metric = regexp.MustCompile(`(peer_\w+)(?:\{([^}]*)\})?`)

// The dashboard in deploy shows every metric, of the chosen peers, in panels that do not overlap.
func TestDashboard(t *testing.T) {
	text := deployed(t, "grafana.json")
	var board struct {
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal([]byte(text), &board); err != nil {
		t.Fatal(err)
	}
	known, shown, taken := documentedMetrics(t), make(map[string]bool), make(map[[2]int]string)
	for _, p := range board.Panels {
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" || at[0] >= 24 {
					t.Fatalf("%s covers %s, or is out of the grid", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
		for _, target := range p.Targets {
			for _, m := range metric.FindAllStringSubmatch(target.Expr, -1) {
				shown[strings.TrimSuffix(m[1], "_bucket")] = true
				if !known[m[1]] {
					t.Errorf("%s: no metric %s", p.Title, m[1])
				}
				if !strings.HasPrefix(m[2], `job=~"$job",instance=~"$instance"`) {
					t.Errorf("%s: %s is not that of the chosen peers", p.Title, m[1])
				}
			}
			if strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") || strings.Count(target.Expr, "{") != strings.Count(target.Expr, "}") {
				t.Errorf("%s: %s", p.Title, target.Expr)
			}
		}
	}
	rules := "groups:\n  - name: all\n    rules:\n"
	for i, p := range board.Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$job", "x", "$instance", "x").Replace(target.Expr)
			rules += fmt.Sprintf("      - {record: \"panel%d%s\", expr: %q}\n", i, target.RefID, expr)
		}
	}
	if promtool, err := exec.LookPath("promtool"); err != nil {
		t.Log("promtool is not here, so it does not check the queries")
	} else if out, err := exec.Command(promtool, "check", "rules", write(t, "rules.yaml", rules)).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
	for name := range known {
		if !shown[strings.TrimSuffix(name, "_bucket")] {
			t.Errorf("no panel shows %s", name)
		}
	}
}
