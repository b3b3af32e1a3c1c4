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
	Seconds int    // of CPU time that it took without flags: 0 for less than one, -1 for some minutes
	Writes  bool   // files below --out
	Run     runner
	// Flags may replace Run. It defines flags, and returns the function that runs with their
	// values.
	Flags func(*flag.FlagSet) runner
}

type runner func(ctx context.Context, job *Job) error

// prepare defines the experiment's flags.
func (e Experiment) prepare(flags *flag.FlagSet) runner {
	if e.Flags != nil {
		return e.Flags(flags)
	}
	return e.Run
}

type registry map[string]Experiment

// experiments has all experiments of the program.
var experiments = registry{}

// add adds e to the registry. Two experiments with one name are a mistake in the program.
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
		paragraph(w, fmt.Sprintf("  %-*s  ", width, name), strings.Repeat(" ", width+4), r[name].Summary)
	}
}

// find returns the experiment of a name, or an error that lists all names.
func (r registry) find(name string) (Experiment, error) {
	if e, ok := r[name]; ok {
		return e, nil
	}
	return Experiment{}, fmt.Errorf("no experiment %q: there are %s", name, strings.Join(r.names(), ", "))
}
