package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// A kind of system.
type kind struct {
	name string
	make func(w *world, room int) system
}

var systems = []kind{{"sibling.Cache", newOurs}, {"groupcache-go", newTheirs}}

// A scenario is what happens in a run, halfway if it is not the herd.
type scenario struct {
	name     string
	requests int
	room     int // objects a node
	event    func(w *world) (live, not int)
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

const (
	herd     = 200 // ask at once
	herdKeys = 20
)

// measured runs a scenario.
func (w *world) measured(sc scenario, requests int) {
	if sc.requests == 0 {
		for k := range herdKeys {
			var all sync.WaitGroup
			for i := range herd {
				w.took = append(w.took, -1)
				at := len(w.took) - 1
				all.Go(func() { w.ask(i%nodes, keyOf(k), at) })
			}
			all.Wait()
			time.Sleep(time.Second)
		}
		return
	}
	w.run(requests/2, nodes, -1)
	live, not := nodes, -1
	if sc.event != nil {
		live, not = sc.event(w)
		w.again = 0
	}
	w.run(requests-requests/2, live, not)
}

// A result is what was measured of one run; times are of its second half.
type result struct {
	fetches, distinct, again, errors, slow int
	bytes                                  int64
	mean, worst                            time.Duration
}

// table writes what was measured in Markdown.
func table(results map[string]result) string {
	var b strings.Builder
	fmt.Fprintln(&b, "| | sibling.Cache | groupcache-go | ours / theirs |")
	fmt.Fprintln(&b, "|---|--:|--:|--:|")
	for _, sc := range scenarios {
		a, ok1 := results[sc.name+"/"+systems[0].name]
		g, ok2 := results[sc.name+"/"+systems[1].name]
		if !ok1 && !ok2 {
			continue
		}
		row := func(what string, of func(r result) any, ratio func(r result) float64) {
			last := ""
			if ratio != nil && ratio(g) != 0 {
				last = fmt.Sprintf("%.2f", ratio(a)/ratio(g))
			}
			fmt.Fprintf(&b, "| %s: %s | %v | %v | %s |\n", sc.name, what, of(a), of(g), last)
		}
		fetches := func(r result) float64 { return float64(r.fetches) }
		row("origin fetches", func(r result) any { return r.fetches }, fetches)
		switch {
		case sc.requests == 0:
		case sc.event == nil:
			row("the same, × each once", func(r result) any { return fmt.Sprintf("%.3f", fetches(r)/float64(r.distinct)) }, nil)
			row("mean latency of the second half", func(r result) any { return fmt.Sprintf("%.2f ms", r.mean.Seconds()*1e3) },
				func(r result) float64 { return r.mean.Seconds() })
			row("bytes between nodes, gossip included", func(r result) any { return fmt.Sprintf("%.1f MB", float64(r.bytes)/1e6) },
				func(r result) float64 { return float64(r.bytes) })
		default:
			row("client errors", func(r result) any { return r.errors }, nil)
			row("requests over 100 ms, worst", func(r result) any { return fmt.Sprintf("%d, %v", r.slow, r.worst.Round(100*time.Microsecond)) }, nil)
			row("fetched again", func(r result) any { return r.again }, nil)
		}
	}
	return b.String()
}
