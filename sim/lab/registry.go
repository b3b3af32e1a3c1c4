package lab

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Experiment is one thing that sim can run. A file of its own declares it, and its package's
// Experiments list it.
type Experiment struct {
	Name    string // one word, lower case
	Summary string // one line, no full stop
	Args    string // the arguments it takes, as in "[TRACE]"; empty for none
	Seconds int    // of CPU time that it took without flags: 0 for less than one, -1 for some minutes
	Run     Runner
	// Flags may replace Run. It defines flags, and returns the function that runs with their
	// values.
	Flags func(*flag.FlagSet) Runner
}

// Prepare defines the experiment's flags.
func (e Experiment) Prepare(flags *flag.FlagSet) Runner {
	if e.Flags != nil {
		return e.Flags(flags)
	}
	return e.Run
}

type Registry map[string]Experiment

// Add adds experiments. Two of one name are a mistake in the program.
func (r Registry) Add(all ...Experiment) Registry {
	for _, e := range all {
		if _, ok := r[e.Name]; ok {
			panic("sim: two experiments named " + e.Name)
		}
		r[e.Name] = e
	}
	return r
}

func (r Registry) Names() []string {
	return slices.Sorted(maps.Keys(r))
}

func (r Registry) list(w *strings.Builder) {
	width := 0
	for name := range r {
		width = max(width, len(name))
	}
	for _, name := range r.Names() {
		fmt.Fprintf(w, "  %-*s  %s\n", width, name, r[name].Summary)
	}
}

// Find returns the experiment of a name, or an error that lists all names.
func (r Registry) Find(name string) (Experiment, error) {
	if e, ok := r[name]; ok {
		return e, nil
	}
	return Experiment{}, fmt.Errorf("no experiment %q: there are %s", name, strings.Join(r.Names(), ", "))
}
