package systems

import (
	"flag"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/sim/lab"
)

var exchangeExperiment = lab.Experiment{
	Name:    "exchange",
	Summary: "keeps the digests of 10 to 10,000 peers in step, in virtual time: bytes, lag, repair",
	Seconds: -1,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		o := exchangeDefaults()
		lab.NumberFlag(flags, &o.peers, "peers", "number of peers; without it 10, 100 and 1,000", 2, 10_000)
		lab.NumberFlag(flags, &o.objects, "objects", "number of objects of each peer", 1000, 1_000_000)
		lab.NumberFlag(flags, &o.churn, "churn", "share of the objects that a peer replaces in a minute", 1e-6, 10)
		lab.NumberFlag(flags, &o.loss, "loss", "share of datagrams lost; without it both 0 and 0.3", 0, 0.9)
		lab.NumberFlag(flags, &o.time, "time", "measured virtual time; without it 20 s, or 5 s above 1,000 peers",
			time.Millisecond, time.Hour)
		lab.NumberFlag(flags, &o.delay, "delay", "mean delay of the network one way", 0, time.Second)
		lab.NumberFlag(flags, &o.observed, "observed",
			"number of peers that know all others; the rest know only these. Without it all for up to 300 peers, "+
				"32 above", 2, 1000)
		lab.NumberFlag(flags, &o.contents, "contents",
			"number of different caches; the other peers have copies of their contents", 1, 1000)
		lab.NumberFlag(flags, &o.wait, "wait", "time between publications; without it 10 ms for each peer, 0.1 to 1 s",
			time.Millisecond, time.Minute)
		return func(job *lab.Job) error { return runExchange(job, o) }
	},
}

func runExchange(job *lab.Job, o *exchangeOptions) error {
	counts, losses := []int{10, 100, 1000}, []float64{0, 0.3}
	if o.peers != 0 {
		counts = []int{o.peers}
	}
	if o.loss >= 0 {
		losses = []float64{o.loss}
	}
	report := newExchangeReport(job, o)
	for _, peers := range counts {
		for _, loss := range losses {
			if job.Short && peers > 100 {
				report.skip(peers, loss)
				continue
			}
			w, err := newExchange(o.of(peers, loss, job.Short), job)
			if err != nil {
				return err
			}
			if err := w.measure(); err != nil {
				return err
			}
			report.add(w)
		}
	}
	report.notes()
	return nil
}

// An exchangeReport has the experiment's tables.
type exchangeReport struct {
	traffic, lag, work *lab.Table
	modelled           bool
	partly             string // note on how many peers the index has, if not all
}

func newExchangeReport(job *lab.Job, o *exchangeOptions) *exchangeReport {
	const loose = 0.5
	text := func(name, head string) lab.Column { return lab.Column{Name: name, Head: head} }
	number := func(name, head, format string) lab.Column {
		return lab.Column{Name: name, Head: head, Format: format, Loose: loose}
	}
	loosely := func(name, head, format string) lab.Column {
		return lab.Column{Name: name, Head: head, Format: format, Loose: lab.AnyValue}
	}
	title := fmt.Sprintf("%d objects a peer, %.3g %% replaced a minute", o.objects, 100*o.churn)
	r := new(exchangeReport)
	columns := []lab.Column{text("peers", ""), text("loss", "loss %"), text("direction", "")}
	for i, name := range kinds {
		c := loosely(name, "", "%.4g")
		if i == kindAdvert || i == kindInline {
			c.Loose = loose
		}
		columns = append(columns, c)
	}
	columns = append(columns, number("total", "", "%.4g"), number("broadcast", "snapshots every minute", "%.4g"),
		number("share", "share of that %", "%.3g"))
	r.traffic = job.Table("Bytes a second and peer: "+title, columns...)
	r.traffic.Detail = func(row []any) bool { return row[2] == "out" } // about as much, in all
	r.lag = job.Table("Lag from change to use, and repair: "+title,
		text("peers", ""), text("loss", "loss %"), number("interval", "between publications, s", "%.3g"),
		number("one", "to a peer, median s", "%.2f"), loosely("one99", "99 %", "%.2f"),
		loosely("worst", "worst", "%.2f"),
		number("all", "to everyone, median s", "%.2f"), loosely("all_worst", "worst", "%.2f"),
		number("broadcast", "broadcast to everyone, median s", "%.1f"),
		loosely("missed", "adverts missed/s and peer", "%.4g"), loosely("repair", "bytes a repair", "%.4g"),
		number("snapshot", "bytes of a snapshot", "%.4g"), loosely("repair_share", "repair of snapshots %", "%.3g"),
		loosely("join", "joined after s", "%.1f"))
	r.work = job.Table("Computing, by observed peers: "+title,
		text("peers", ""), text("loss", "loss %"), number("decoded", "decoded and applied/s and peer", "%.4g"),
		loosely("each", "CPU µs each", "%.4g"), loosely("index", "index, CPU µs each", "%.4g"),
		loosely("share", "of a core %", "%.3g"))
	return r
}

// skip adds the rows of a cluster that is too large for a short run.
func (r *exchangeReport) skip(peers int, loss float64) {
	r.traffic.Skip(peers, 100*loss, "in")
	r.traffic.Skip(peers, 100*loss, "out")
	r.lag.Skip(peers, 100*loss)
	r.work.Skip(peers, 100*loss)
	r.modelled = true
}

func (r *exchangeReport) add(w *exchange) {
	o := w.options
	seconds, n := o.time.Seconds(), float64(o.observed)
	snapshot := w.snapshotBytes()
	broadcast := snapshot * float64(o.peers-1) / 60
	for d, direction := range []string{"in", "out"} {
		row := []any{o.peers, 100 * o.loss, direction}
		total := 0.0
		for k := range kinds {
			rate := float64(w.bytes[d][k]) / seconds / n
			total += rate
			row = append(row, lab.Round(rate, 6))
		}
		r.traffic.Row(append(row, lab.Round(total, 6), lab.Round(broadcast, 6), lab.Round(100*total/broadcast, 6))...)
	}
	missed := float64(w.missed) / seconds / n
	var repair, share any
	if w.repairs > 0 {
		each := float64(w.repairBytes) / float64(w.repairs)
		repair, share = lab.Round(each, 6), lab.Round(100*each/snapshot, 6)
	}
	r.lag.Row(o.peers, 100*o.loss, lab.Round(w.interval(), 4),
		w.lags.quantile(0.5), w.lags.quantile(0.99), w.lags.worst(),
		w.everyone.quantile(0.5), w.everyone.worst(), 30+o.delay.Seconds(),
		lab.Round(missed, 6), repair, lab.Round(snapshot, 6), share, lab.Round(w.joined.Seconds(), 4))
	rate := float64(w.decoded) / seconds / n
	each := w.computing.Seconds() / float64(max(1, w.timed))
	index := w.indexing.Seconds() / float64(max(1, w.learned))
	r.work.Row(o.peers, 100*o.loss, lab.Round(rate, 6), lab.Round(1e6*each, 6), lab.Round(1e6*index, 6), lab.Round(100*rate*(each+index), 6))
	r.modelled = r.modelled || o.observed < o.peers
	if n := o.indexed(); n < o.peers-1 {
		r.partly = fmt.Sprintf("Of %d peers the index has %d, with %d objects in all: the cost of a change is "+
			"measured on these.", o.peers, n, n*o.objects)
	}
}

func (r *exchangeReport) notes() {
	r.traffic.Note("Every peer runs the engine of gossip/exchange. Not counted are the headers of UDP, TCP and TLS, " +
		"the setup of connections, and memberlist's own packets.")
	r.traffic.Note("Adverts: as published, and repeated. Inline: deltas in the same datagram. Answers: to gets, " +
		"without a body. Snapshots every minute: the same coded filters, sent by every peer to every other.")
	r.lag.Note("A lag is that of a random change of each publication; the worst is that of the oldest change. " +
		"Repair: all bytes received because adverts were missed, for each of these. Joined after: the time until all " +
		"peers, which start within two seconds, had all digests.")
	r.lag.Note("Modelled are contents (a few counting filters with real changes), membership (known; no peer dies), " +
		"and the network (delay 0.5 to 1.5 of the mean; a stream retransmits after 0.2 s, 0.4 s and so on). " +
		"Computing takes no time here.")
	r.work.Note("One observed peer decodes, verifies and applies everything that it gets, and updates an index of " +
		"the others. --contents makes the contents of peers different. Not counted: the engine. Times depend on the " +
		"machine.")
	if r.partly != "" {
		r.work.Note("%s", r.partly)
	}
	if r.modelled {
		r.lag.Note("Above %d peers, %d are observed: they know all others. The others know only the observed ones, "+
			"spread their adverts over the time of a full round, and publish at the full cluster's pace.",
			mostComplete, fewObserved)
	}
}
