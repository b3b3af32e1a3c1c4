package systems

import (
	"embed"
	"flag"
	"fmt"
	"slices"

	"github.com/summarycache/summarycache/sim/caches"
	"github.com/summarycache/summarycache/sim/lab"
	"github.com/summarycache/summarycache/sim/workload"
)

var systemsExperiment = lab.Experiment{
	Name:    "systems",
	Args:    "[TRACE]",
	Summary: "replays a request trace, or three of its own, over caches that cooperate in many ways",
	Seconds: 30,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		o := &systemsOptions{caches: ownCaches[0], capacity: 0.1}
		lab.NumberFlag(flags, &o.caches, "caches", "number of caches", 2, 64)
		lab.NumberFlag(flags, &o.capacity, "capacity",
			"size of each cache, as a share of the bytes of all objects, or of their number if the trace has no sizes",
			1e-9, 1)
		return func(job *lab.Job) error { return runSystems(job, *o) }
	},
}

//go:embed testdata/*.ptrace.gz
var traceFiles embed.FS

type systemsOptions struct {
	caches   int
	capacity float64
}

// ownTraces are replayed if the user names no trace, each with these numbers of caches.
var (
	ownTraces = []string{"elastic-apache", "cache2k-web07", "adaptsize"}
	ownCaches = []int{4, 16}
)

func runSystems(job *lab.Job, o systemsOptions) error {
	if len(job.Args) > 1 {
		return lab.Usagef("want one TRACE, not %q", job.Args)
	}
	if len(job.Args) == 1 {
		t, err := workload.ReadFile(job.Args[0], workload.Options{})
		if err != nil {
			return err
		}
		return replayAll(job, t, o, false)
	}
	if err := pace(job); err != nil {
		return err
	}
	for _, name := range ownTraces {
		t, err := ownTrace(name)
		if err != nil {
			return err
		}
		for _, caches := range ownCaches {
			own := o
			own.caches = caches
			if err := replayAll(job, t, own, job.Short && (name != ownTraces[0] || caches != ownCaches[0])); err != nil {
				return err
			}
		}
	}
	return nil
}

// pace shows what messages cost by the rate of requests. What is sent by the clock costs less for each of them.
func pace(job *lab.Job) error {
	t, err := ownTrace(ownTraces[0])
	if err != nil {
		return err
	}
	c := caches.New(t, caches.Options{Caches: ownCaches[0], Limit: caches.Weight(t) / 10, Seed: job.Seed})
	ways := slices.DeleteFunc(c.Ways(), func(w caches.Way) bool {
		return w.Name != "ICP" && w.Name != "Squid's digests, every 60 s" && w.Name != "ours"
	})
	title := fmt.Sprintf("%s, %d caches: bytes of all messages a request, by the rate of requests",
		t.Name, ownCaches[0])
	table := job.Table(title, lab.Column{Name: "rate", Head: "requests a second"})
	table.Chart = &lab.Chart{File: "pace", X: "requests a second, over all caches",
		Y: "bytes a request, with headers and membership"}
	for i, w := range ways {
		name := fmt.Sprintf("way%d", i)
		table.Chart.Lines = append(table.Chart.Lines, name)
		table.Columns = append(table.Columns, lab.Column{Name: name, Head: w.Name, Format: "%.4g", Loose: 0.02},
			lab.Column{Name: name + "_remote", Head: "its remote hit %", Format: "%.2f", Loose: 0.02})
	}
	n := float64(c.Requests())
	for _, rate := range []float64{0.1, 0.3, 1, 3, 10, 30, 100} {
		row := []any{rate}
		for _, w := range ways {
			w = w.At(rate * c.Seconds() / n)
			o, err := c.Replay(w)
			if err != nil {
				return err
			}
			_, bytes := c.MessageBytes(w, o)
			row = append(row, lab.Round(bytes/n, 5), lab.Round(100*float64(o.Remote)/n, 5))
		}
		table.Row(row...)
	}
	return nil
}

// ownTrace reads a trace of the repository.
func ownTrace(name string) (*workload.Trace, error) {
	f, err := traceFiles.Open("testdata/" + name + ".ptrace.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return workload.Read(name, f, workload.Options{})
}

// RESULTS.md has the main ways, without these columns.
var (
	mainWays = []string{"none", "ICP", "Summary Cache, 8 bits, 1 %", "Squid's digests, every 60 s", "one owner per key",
		"one owner per key, and hot caches (groupcache)", "truncated hashes, bits as planned, when ours would",
		"ours, copies as all else", "ours", "ours, requests 100 times as fast"}
	detailColumns = []string{"remote", "stale", "queries", "query_bytes", "updates", "origin",
		"zone_bytes", "round_trips"}
)

// replayAll replays a trace, or only its beginning, in every way.
func replayAll(job *lab.Job, t *workload.Trace, o systemsOptions, short bool) error {
	loose := 0.02 // a better encoder changes a few bytes
	if short {
		loose = lab.AnyValue
		t = t.Head(500)
	}
	limit := int64(o.capacity * float64(caches.Weight(t)))
	c := caches.New(t, caches.Options{Caches: o.caches, Limit: limit, Seed: job.Seed})
	ways := c.Ways()
	results := make([]caches.Outcomes, len(ways))
	err := job.Each(len(ways), t.Name+": ways of cooperating replayed", func(i int) (err error) {
		results[i], err = c.Replay(ways[i])
		return err
	})
	if err != nil {
		return err
	}
	column := func(name, head, format string) lab.Column {
		return lab.Column{Name: name, Head: head, Format: format, Loose: loose}
	}
	table := job.Table(fmt.Sprintf("%s: %d requests for %d objects, %d caches of %s", t.Name, c.Requests(), c.Objects(),
		o.caches, c.Size()),
		lab.Column{Name: "way"},
		column("local", "local hit %", "%.2f"), column("remote", "remote hit %", "%.2f"),
		column("total", "total hit %", "%.2f"),
		column("false_hits", "false hits %", "%.3f"), column("stale", "stale hits %", "%.3f"),
		column("missed", "missed %", "%.3f"),
		column("queries", "query messages/request", "%.3f"), column("query_bytes", "query bytes/request", "%.1f"),
		column("updates", "update messages/request", "%.4f"), column("update_bytes", "update bytes/request", "%.1f"),
		column("wire_bytes", "all bytes/request, IP's headers too", "%.1f"),
		column("all_bytes", "and membership", "%.1f"),
		column("origin", "origin fetches, over each object once", "%.3f"),
		column("moved", "bodies between caches, % of requests", "%.2f"),
		column("zone_bytes", "of them between 3 zones, bytes/request", "%.4g"),
		column("memory", "memory/cache, bytes", ""), column("round_trips", "extra round trips/miss", "%.3f"))
	for i, c := range table.Columns {
		table.Columns[i].Detail = slices.Contains(detailColumns, c.Name)
	}
	// one small cluster is enough
	brief := o.caches == ownCaches[0] && slices.Contains(ownTraces, t.Name) && t.Name != ownTraces[1]
	table.Detail = func(row []any) bool { return brief || !slices.Contains(mainWays, row[0].(string)) }
	n, took := float64(c.Requests()), c.Seconds()
	for i, w := range ways {
		r := results[i]
		share := func(count int) float64 { return lab.Round(100*float64(count)/n, 6) }
		misses := float64(max(1, c.Requests()-r.Local))
		wire, all := c.MessageBytes(w, r)
		table.Row(w.Name, share(r.Local), share(r.Remote), share(r.Local+r.Remote), share(r.FalseHits), share(r.Stale), share(r.Missed),
			lab.Round(float64(r.Queries)/n, 6), lab.Round(float64(r.QueryBytes)/n, 6), lab.Round(float64(r.Updates)/n, 6), lab.Round(float64(r.UpdateBytes)/n, 6),
			lab.Round(wire/n, 6), lab.Round(all/n, 6), lab.Round(float64(c.Requests()-r.Local-r.Remote)/float64(c.Objects()), 6), share(r.Moved), lab.Round(float64(r.Crossed)/n, 6), r.Memory, lab.Round(float64(r.RoundTrips)/misses, 5))
	}
	if !c.Sized {
		table.Note("The trace has no sizes: a body between zones counts as a byte.")
	}
	if took > 0 {
		table.Note("%.3g requests a second over all caches.", n/took)
	}
	table.Note("Truncated hashes with bits as planned have %d.", c.PlannedBits())
	if untimed(t) {
		table.Note("The trace has no times: a request counts as a second.")
	}
	if len(job.Args) > 0 {
		table.Note("%s.", t.Summary())
	}
	return nil
}

// untimed reports whether the times of a trace are only the numbers of its requests.
func untimed(t *workload.Trace) bool {
	for i, r := range t.Requests {
		if r.Seconds-t.Requests[0].Seconds != float64(i) {
			return false
		}
	}
	return len(t.Requests) > 1
}
