// Package compare compares httpcache.Member with groupcache-go: the same requests, the
// same network in memory and the same origin, in virtual time. It is a module of its own so
// that no other module inherits the dependencies of groupcache-go.
//
//	go test -v -timeout 0 -run Table -full   # prints the table of all scenarios, in some minutes
//	go test -v -run Table/herd -full         # one scenario
package compare

import (
	"flag"
	"fmt"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

// system names a cache, and makes it.
var systems = []struct {
	name string
	make func(w *world, room int) system
}{{"httpcache.Member", newOurs}, {"groupcache-go", newTheirs}}

// A scenario is a sequence of requests. Halfway there may be an event.
type scenario struct {
	name     string
	requests int // 0 = the herd
	room     int // objects a node
	// event returns how many nodes are alive afterwards, and the index of one that gets no requests.
	event func(w *world) (live, not int)
}

var scenarios = []scenario{
	{"all fit once", 200_000, objects / nodes, nil},
	{"a fiftieth fits at a node", 100_000, objects / 50, nil},
	{"herd", 0, objects / nodes, nil},
	{"a node falls silent", 80_000, objects / nodes, func(w *world) (int, int) {
		var others []string
		for i := range nodes - 1 {
			others = append(others, ip(i))
		}
		w.net.Partition(others, []string{ip(nodes - 1)})
		return nodes, nodes - 1
	}},
	{"a node dies loudly", 80_000, objects / nodes, func(w *world) (int, int) {
		w.net.Host(ip(nodes - 1)).Kill()
		time.AfterFunc(5*time.Second, func() { w.system.gone(nodes - 1) })
		return nodes, nodes - 1
	}},
	{"a node joins", 80_000, objects / nodes, func(w *world) (int, int) {
		w.system.join()
		return nodes + 1, -1
	}},
}

// A result is what was measured in one run; times are of its second half.
type result struct {
	fetches, distinct, again, errors, slow int
	bytes                                  int64
	mean, worst                            time.Duration
}

// measure runs one scenario with one system, with 1/scale of the requests.
func measure(t *testing.T, sc scenario, sys, scale int) (r result) {
	synctest.Test(t, func(*testing.T) {
		w := newWorld(1)
		w.system = systems[sys].make(w, sc.room)
		time.Sleep(5 * time.Second) // until all nodes know each other
		before := w.bytes()
		w.play(sc, sc.requests/scale)
		r = result{fetches: w.fetches, distinct: len(w.fetched), again: w.again, errors: w.errors, bytes: w.bytes() - before}
		r.mean, r.worst, r.slow = w.latency()
		w.end()
	})
	return r
}

// TestTargets checks the rows for which an eighth of the requests is enough.
func TestTargets(t *testing.T) {
	for _, sc := range scenarios {
		switch sc.name {
		case "herd":
			if r := measure(t, sc, 0, 8); r.fetches != herdKeys {
				t.Errorf("%s: %d loads, want %d", sc.name, r.fetches, herdKeys)
			}
		case "a node falls silent":
			if r := measure(t, sc, 0, 8); r.errors != 0 || r.worst > 120*time.Millisecond {
				t.Errorf("%s: %d errors, worst %v", sc.name, r.errors, r.worst)
			}
		case "all fit once":
			ours, theirs := measure(t, sc, 0, 8), measure(t, sc, 1, 8)
			if float64(ours.fetches) > 1.01*float64(ours.distinct) || float64(ours.bytes) > 0.6*float64(theirs.bytes) || ours.mean > theirs.mean {
				t.Errorf("%s: %+v, groupcache-go %+v", sc.name, ours, theirs)
			}
		}
	}
}

var full = flag.Bool("full", false, "print the table, from all requests")

// TestTable prints the results in Markdown.
func TestTable(t *testing.T) {
	if !*full {
		t.Skip("needs some minutes: see -full")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	fmt.Println("| | httpcache.Member | groupcache-go |\n|---|--:|--:|")
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			ours, theirs := measure(t, sc, 0, 1).rows(sc), measure(t, sc, 1, 1).rows(sc)
			for i, row := range ours {
				fmt.Printf("| %s: %s | %s | %s |\n", sc.name, row[0], row[1], theirs[i][1])
			}
		})
	}
}

// rows returns what is worth comparing in a scenario, with its name.
func (r result) rows(sc scenario) (rows [][2]string) {
	row := func(name, format string, value ...any) {
		rows = append(rows, [2]string{name, fmt.Sprintf(format, value...)})
	}
	row("origin fetches", "%d", r.fetches)
	switch {
	case sc.requests == 0:
	case sc.event == nil:
		row("origin fetches per object", "%.3f", float64(r.fetches)/float64(r.distinct))
		row("mean latency of the second half", "%.2f ms", r.mean.Seconds()*1e3)
		row("bytes between nodes, gossip included", "%.1f MB", float64(r.bytes)/1e6)
	default:
		row("client errors", "%d", r.errors)
		row("requests over 100 ms, worst", "%d, %v", r.slow, r.worst.Round(100*time.Microsecond))
		row("fetched again", "%d", r.again)
	}
	return rows
}
