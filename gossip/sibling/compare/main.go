// Command groupcache compares sibling.Cache with groupcache-go: the same requests, the
// same network in memory and the same origin, in virtual time. It prints one table.
// It is a module of its own so that nobody else inherits groupcache's dependencies.
//
//	go run .            # all of it: some minutes
//	go run . -short     # an eighth of the requests
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func main() {
	testing.Init()
	short := flag.Bool("short", false, "an eighth of the requests")
	only := flag.String("only", "", "the systems and scenarios to run whose names contain it")
	flag.Parse()
	debug.SetGCPercent(400)
	scale := 1
	if *short {
		scale = 8
	}
	results := make(map[string]result)
	var tests []testing.InternalTest
	for _, sc := range scenarios {
		for _, sys := range systems {
			name := sc.name + "/" + sys.name
			if !strings.Contains(name, *only) {
				continue
			}
			tests = append(tests, testing.InternalTest{Name: name, F: func(t *testing.T) {
				start := time.Now()
				results[name] = measure(t, sc, sys, scale)
				fmt.Fprintf(os.Stderr, "%s: %v\n", name, time.Since(start).Round(time.Second))
			}})
		}
	}
	tests = append(tests, testing.InternalTest{Name: "table", F: func(*testing.T) { fmt.Print(table(results)) }})
	// A bubble of virtual time needs a test.
	testing.Main(func(string, string) (bool, error) { return true, nil }, tests, nil, nil)
}

// measure runs one scenario with one system.
func measure(t *testing.T, sc scenario, sys kind, scale int) (r result) {
	synctest.Test(t, func(*testing.T) {
		w := newWorld(1)
		w.system = sys.make(w, sc.room)
		time.Sleep(5 * time.Second) // until everybody knows everybody
		before := w.bytes()
		w.measured(sc, sc.requests/scale)
		r = result{fetches: w.fetches, distinct: len(w.fetched), again: w.again, errors: w.errors, bytes: w.bytes() - before}
		if n := len(w.took); n > 0 {
			r.mean = w.mean(n / 2)
			r.worst, r.slow = w.worst(n / 2)
		}
		w.end()
	})
	return r
}
