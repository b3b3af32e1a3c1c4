package main

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

// withExperiment adds an experiment for the length of one test.
func withExperiment(t *testing.T, e lab.Experiment) {
	experiments.Add(e)
	t.Cleanup(func() { delete(experiments, e.Name) })
}

func call(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

// Experiments accept values from flags, and refuse those that they cannot use.
func TestOwnValues(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"trials --f 0.1", "flag provided but not defined: -f (sim help trials lists the flags)"},
		{"exchange --churn 11", "want 1e-06 to 10"},
		{"exchange --peers 1", "want 2 to 10000"},
		{"exchange --peers 1e3x", "1e3x: want 2 to 10000"},
		{"exchange --peers 100.5", "100.5: want 2 to 10000"},
		{"exchange --churn NaN", "NaN: want 1e-06 to 10"},
		{"exchange --time 1", "1: want 1ms to 1h0m0s"},
	} {
		if code, _, errs := call(strings.Fields(c.args)...); code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%s: %d, %q", c.args, code, errs)
		}
	}
	if code, text, _ := call("help", "exchange"); code != 0 || !strings.Contains(text, "--peers N") || !strings.Contains(text, "of CPU") {
		t.Errorf("help exchange: %d, %s", code, text)
	}
}

// A measured value is printed with its confidence interval, if that is known.
func TestIntervals(t *testing.T) {
	withExperiment(t, lab.Experiment{Name: "measured", Run: func(job *lab.Job) error {
		table := job.Table("throws", lab.Column{Name: "name"}, lab.Column{Name: "mean", Format: "%.1f"})
		table.Row("a", lab.Measure{Value: 5.5, Half: 6.355})
		table.Row("b", lab.Measure{Value: 7})
		return nil
	}})
	for format, want := range map[string]string{"--csv": "name,mean,mean_ci95\na,5.5,6.355\nb,7,\n", "--trials=1": "5.5 ±6.4\n"} {
		if code, out, errs := call("measured", format); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %d, %q, %q, want %q", format, code, out, errs, want)
		}
	}
}

func TestRun(t *testing.T) {
	withExperiment(t, lab.Experiment{Name: "dice", Summary: "throws a die", Run: func(job *lab.Job) error {
		table := job.Table("throws", lab.Column{Name: "trial"}, lab.Column{Name: "eyes", Head: "eyes of 6", Format: "%.1f"})
		rng := job.Rand(7)
		for i := range max(job.Trials, 1) {
			table.Row(i, float64(1+rng.IntN(6)))
		}
		table.Row("none", nil)
		return nil
	}})
	withExperiment(t, lab.Experiment{Name: "broken", Summary: "fails", Run: func(*lab.Job) error {
		return errors.New("no luck")
	}})

	t.Run("list", func(t *testing.T) {
		code, out, _ := call()
		if code != 0 || !regexp.MustCompile(`(?m)^  dice +throws a die$`).MatchString(out) {
			t.Errorf("run() = %d, %q", code, out)
		}
	})
	t.Run("seeded", func(t *testing.T) {
		_, a, _ := call("dice", "--trials", "20")
		_, b, _ := call("--trials=20", "dice", "--seed=1")
		_, c, _ := call("dice", "--trials", "20", "--seed", "2")
		if a != b || a == c {
			t.Errorf("seed 1: %q and %q; seed 2: %q", a, b, c)
		}
		if lines := strings.Split(a, "\n"); len(lines) != 24 || lines[1] != "  trial  eyes of 6" || lines[22] != "  none           -" {
			t.Errorf("run(dice) prints %q", lines)
		}
	})
	t.Run("csv", func(t *testing.T) {
		code, out, _ := call("dice", "--csv", "--trials", "2")
		lines := strings.Split(out, "\n")
		if code != 0 || len(lines) != 7 || lines[0] != "# go run ./sim dice --csv --trials 2; seed 1; commit (devel)" || lines[1] != "# throws" || lines[2] != "trial,eyes" || lines[5] != "none," {
			t.Errorf("run(dice --csv) = %d, %q", code, out)
		}
	})
	t.Run("help", func(t *testing.T) {
		_, list, _ := call()
		if code, out, _ := call("help"); code != 0 || out != list {
			t.Errorf("run(help) = %d, %q", code, out)
		}
		if code, out, _ := call("help", "dice"); code != 0 || out != "usage: sim dice [flags]\n\nthrows a die\n\nIt took less than a second of CPU time, on one core of a server of 2026.\n" {
			t.Errorf("run(help dice) = %d, %q", code, out)
		}
		if code, out, _ := call("help", "figures"); code != 0 || !strings.Contains(out, `RESULTS.md shows it under "Figures"`) {
			t.Errorf("run(help figures) = %d, %q", code, out)
		}
	})
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"help", "dise"}, 2, `no experiment "dise": there are `},
		{[]string{"help", "dice", "broken"}, 2, "one experiment at a time"},
		{[]string{"dise"}, 2, ", dice, "},
		{[]string{"broken"}, 1, "sim: broken: no luck"},
		{[]string{"dice", "broken"}, 2, "one experiment at a time"},
		{[]string{"dice", "--sed", "1"}, 2, "sed"},
		{[]string{"dice", "--trials", "-1"}, 2, "-trials: -1: want 1"},
		{[]string{"dice", "--trials", "0"}, 2, "-trials: 0: want 1"},
		{[]string{"dice", "--seed", "x"}, 2, "seed"},
	} {
		code, out, stderr := call(c.args...)
		if code != c.code || !strings.Contains(stderr, c.says) || out != "" {
			t.Errorf("run(%q) = %d, prints %q and says %q; want %d and %q", c.args, code, out, stderr, c.code, c.says)
		}
	}
}

func TestRegistered(t *testing.T) {
	for name, e := range experiments {
		if name != strings.ToLower(name) || e.Summary == "" || strings.HasSuffix(e.Summary, ".") || (e.Run == nil) == (e.Flags == nil) {
			t.Errorf("experiment %q: %+v", name, e)
		}
	}
}
