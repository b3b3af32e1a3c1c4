package systems

import (
	"embed"
	"errors"
	"flag"
	"fmt"

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
		o.model = workload.Model{Requests: 1_000_000, Objects: 20_000, Exponent: 0.8, Rate: 100, Clients: 256, Private: 0.2, Churn: 0.5}
		lab.NumberFlag(flags, &o.caches, "caches", "number of caches", 2, 64)
		lab.NumberFlag(flags, &o.capacity, "capacity", "size of each cache, as a share of the bytes of all objects, or of their number if the trace has no sizes", 1e-9, 1)
		flags.BoolVar(&o.skip, "skip", false, "skip broken lines of the trace")
		flags.BoolVar(&o.generate, "synthetic", false, "generate a trace of 256 clients and 100 requests a second, by --requests, --objects, --zipf, --private and --churn")
		lab.NumberFlag(flags, &o.model.Requests, "requests", "number of requests", 1, 100_000_000)
		lab.NumberFlag(flags, &o.model.Objects, "objects", "number of objects that all clients share, and of those that each client has for itself", 1, 100_000_000)
		lab.NumberFlag(flags, &o.model.Exponent, "zipf", "exponent of the Zipf law of the objects' popularity", 0, 10)
		lab.NumberFlag(flags, &o.model.Private, "private", "share of the requests for their client's own objects", 0, 1)
		lab.NumberFlag(flags, &o.model.Churn, "churn", "how often each object is replaced during the trace, on average", 0, 1000)
		return func(job *lab.Job) error { return runSystems(job, *o) }
	},
}

//go:embed testdata/*.ptrace.gz
var traceFiles embed.FS

// membershipBytes is the cost of membership per cache and second, with headers, in a
// cluster of so many: a line through the measurements of TestIdleBytes of package gossip.
func membershipBytes(caches int) float64 { return 147 + 0.72*float64(caches) }

// datagramHeaders are the headers of IPv4 and UDP, in bytes. Messages over TCP have more, which
// is the same for all ways.
const datagramHeaders = 28

// ownTraces are replayed if the user names no trace, each with these numbers of caches.
var (
	ownTraces = []string{"elastic-apache", "cache2k-web07", "adaptsize"}
	ownCaches = []int{4, 16}
)

func runSystems(job *lab.Job, o systemsOptions) error {
	if len(job.Args) > 1 {
		return lab.Usagef("want one TRACE, not %q", job.Args)
	}
	if o.generate {
		if len(job.Args) > 0 {
			return lab.Usagef("want --synthetic or %s, not both", job.Args[0])
		}
		o.model.Seed = job.Seed
		return replayAll(job, workload.Synthetic(o.model), o, false)
	}
	if len(job.Args) == 1 {
		t, err := workload.ReadFile(job.Args[0], workload.Options{Skip: o.skip})
		if _, broken := errors.AsType[*workload.LineError](err); broken {
			err = fmt.Errorf("%w (use --skip to skip such lines)", err)
		}
		if err != nil {
			return err
		}
		return replayAll(job, t, o, false)
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

// ownTrace reads a trace of the repository.
func ownTrace(name string) (*workload.Trace, error) {
	f, err := traceFiles.Open("testdata/" + name + ".ptrace.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return workload.Read(name, f, workload.Options{})
}

// replayAll replays a trace, or only its beginning, in every way.
func replayAll(job *lab.Job, t *workload.Trace, o systemsOptions, short bool) error {
	loose := 0.02 // a better encoder changes a few bytes
	if short {
		loose = lab.AnyValue
		t = t.Head(500)
	}
	c := newCluster(t, &o, job)
	ways := c.ways()
	results := make([]outcomes, len(ways))
	err := job.Each(len(ways), t.Name+": ways of cooperating replayed", func(i int) (err error) {
		results[i], err = c.replay(ways[i])
		return err
	})
	if err != nil {
		return err
	}
	column := func(name, head, format string) lab.Column {
		return lab.Column{Name: name, Head: head, Format: format, Loose: loose}
	}
	table := job.Table(fmt.Sprintf("%s: %d requests for %d objects, %d caches of %s", t.Name, len(c.requests), len(c.names), o.caches, c.size()),
		lab.Column{Name: "way"},
		column("local", "local hit %", "%.2f"), column("remote", "remote hit %", "%.2f"), column("total", "total hit %", "%.2f"),
		column("false_hits", "false hits %", "%.3f"), column("stale", "stale hits %", "%.3f"), column("missed", "missed %", "%.3f"),
		column("queries", "query messages/request", "%.3f"), column("query_bytes", "query bytes/request", "%.1f"),
		column("updates", "update messages/request", "%.4f"), column("update_bytes", "update bytes/request", "%.1f"),
		column("wire_bytes", "all bytes/request, IP's headers too", "%.1f"), column("all_bytes", "and membership", "%.1f"),
		column("origin", "origin fetches, over each object once", "%.3f"), column("moved", "bodies between caches, % of requests", "%.2f"),
		column("zone_bytes", "of them between 3 zones, bytes/request", "%.4g"),
		column("memory", "memory/cache, bytes", ""), column("round_trips", "extra round trips/miss", "%.3f"))
	n := float64(len(c.requests))
	took := c.requests[len(c.requests)-1].time - c.requests[0].time
	for i, w := range ways {
		r := results[i]
		share := func(count int) float64 { return lab.Round(100*float64(count)/n, 6) }
		misses := float64(max(1, len(c.requests)-r.local))
		wire := float64(r.queryBytes+r.updateBytes+datagramHeaders*(r.queries+r.updates)) / n
		all := wire
		if w.gossip {
			all += membershipBytes(c.caches) * float64(c.caches) * took / w.speed() / n
		}
		table.Row(w.name, share(r.local), share(r.remote), share(r.local+r.remote), share(r.falseHits), share(r.stale), share(r.missed),
			lab.Round(float64(r.queries)/n, 6), lab.Round(float64(r.queryBytes)/n, 6), lab.Round(float64(r.updates)/n, 6), lab.Round(float64(r.updateBytes)/n, 6),
			lab.Round(wire, 6), lab.Round(all, 6), lab.Round(float64(len(c.requests)-r.local-r.remote)/float64(len(c.names)), 6), share(r.moved), lab.Round(float64(r.crossed)/n, 6), r.memory, lab.Round(float64(r.roundTrips)/misses, 5))
	}
	if !c.sized {
		table.Note("The trace has no sizes: a body between zones counts as a byte.")
	}
	if took > 0 {
		table.Note("%.3g requests a second over all caches.", n/took)
	}
	table.Note("Truncated hashes with bits as planned have %d.", c.plannedBits())
	if untimed(t) {
		table.Note("The trace has no times: a request counts as a second. Every 60 s means every 60 requests, and ours publishes as it does at one request a second.")
	}
	if t.Skipped > 0 {
		table.Note("%d broken lines were skipped.", t.Skipped)
	}
	return nil
}
