package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Experiment is one thing that sim can run. A file of its own declares it:
//
//	var _ = experiments.add(Experiment{Name: "codec", Summary: "...", Run: runCodec})
type Experiment struct {
	Name    string // one word, lower case
	Summary string // one line, no full stop
	Args    string // the arguments it takes, as in "[TRACE]"; empty for none
	Takes   string // of the flags that several experiments have, as in "n f": see ownFlags
	// Flags adds flags of the experiment's own and returns where their values will
	// be, which the job then has as options; nil for none. Help explains them.
	Flags  func(*flag.FlagSet) any
	Help   string
	Writes bool // files below --out
	Run    func(ctx context.Context, job *Job) error
}

// cpuSeconds is what the experiments took without flags: those of no entry less than one, of a
// negative one some minutes.
var cpuSeconds = map[string]int{
	"codec": 34, "counters": 8, "delta": 13, "exchange": -1, "figures": 5, "hashing": 26, "lookup": -1, "memory": 6, "pieces": 8, "receive": 3, "rivals": 2,
	"search": 1, "results": -1, "systems": 30, "tables": 18, "trials": -1, "uses": 1,
}

type registry map[string]Experiment

// experiments holds every experiment of the program.
var experiments = registry{}

// add puts e in the registry. Two of one name are a mistake in the program.
func (r registry) add(e Experiment) Experiment {
	if _, ok := r[e.Name]; ok {
		panic("sim: two experiments named " + e.Name)
	}
	r[e.Name] = e
	return e
}

func (r registry) names() []string {
	return slices.Sorted(maps.Keys(r))
}

func (r registry) list(w *strings.Builder) {
	width := 0
	for name := range r {
		width = max(width, len(name))
	}
	for _, name := range r.names() {
		summary := r[name].Summary
		if args := r[name].Args; args != "" {
			summary += "; arguments: " + args
		}
		for flag := range strings.FieldsSeq(r[name].Takes) {
			summary += " --" + flag
		}
		paragraph(w, fmt.Sprintf("  %-*s  ", width, name), strings.Repeat(" ", width+4), summary)
	}
	for _, name := range r.names() {
		if help := r[name].Help; help != "" {
			fmt.Fprintf(w, "\n%s", help)
		}
	}
}

// find returns the experiment of that name, or an error that says which there are.
func (r registry) find(name string) (Experiment, error) {
	if e, ok := r[name]; ok {
		return e, nil
	}
	return Experiment{}, fmt.Errorf("no experiment %q: there are %s", name, strings.Join(r.names(), ", "))
}
