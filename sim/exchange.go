package main

import (
	"context"
	"flag"
	"fmt"
	"time"
)

var _ = experiments.add(Experiment{
	Name:    "exchange",
	Summary: "keeps the digests of 10 to 10,000 peers in step, in virtual time: bytes, lag, repair",
	Seconds: -1,
	Flags: func(flags *flag.FlagSet) runner {
		o := exchangeDefaults()
		numberFlag(flags, &o.peers, "peers", "number of peers; without it 10, 100 and 1,000, and then bytes against lag, for 1,000 peers of 10,000 objects at several waits", 2, 10_000)
		numberFlag(flags, &o.objects, "objects", "number of objects of each peer", 1000, 1_000_000)
		numberFlag(flags, &o.churn, "churn", "share of the objects that a peer replaces in a minute", 1e-6, 10)
		numberFlag(flags, &o.loss, "loss", "share of datagrams lost; without it both 0 and 0.3", 0, 0.9)
		numberFlag(flags, &o.time, "time", "measured virtual time; without it 20 s, or 5 s above 1,000 peers", time.Millisecond, time.Hour)
		numberFlag(flags, &o.delay, "delay", "mean delay of the network one way", 0, time.Second)
		numberFlag(flags, &o.observed, "observed", "number of peers that know all others; the rest know only these. Without it all for up to 300 peers, 32 above", 2, 1000)
		numberFlag(flags, &o.contents, "contents", "number of different caches; the other peers have copies of their contents", 1, 1000)
		numberFlag(flags, &o.wait, "wait", "time between publications; without it 10 ms for each peer, 0.1 to 1 s", time.Millisecond, time.Minute)
		return func(ctx context.Context, job *Job) error { return runExchange(ctx, job, o) }
	},
})

type exchangeOptions struct {
	peers    int // 0 for several numbers of them
	objects  int
	churn    float64       // share of the objects replaced in a minute
	loss     float64       // of datagrams; negative: both 0 and 30 %
	time     time.Duration // 0: depends on the number of peers; so do observed and wait
	delay    time.Duration
	observed int
	contents int
	wait     time.Duration
}

func exchangeDefaults() *exchangeOptions {
	return &exchangeOptions{objects: 100_000, churn: 0.01, loss: -1, delay: 10 * time.Millisecond, contents: 8}
}

const (
	mostComplete = 300 // with up to so many peers, all are observed by default
	fewObserved  = 32
)

func runExchange(ctx context.Context, job *Job, o *exchangeOptions) error {
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
			if err := w.measure(ctx); err != nil {
				return err
			}
			report.add(w)
		}
	}
	report.notes()
	if o.peers != 0 {
		return nil
	}
	return exchangeCurve(ctx, job)
}

// of returns the options for one cluster, with the defaults that depend on its size.
func (o exchangeOptions) of(peers int, loss float64, short bool) exchangeOptions {
	o.peers, o.loss = peers, loss
	if o.observed == 0 || o.observed > peers {
		o.observed = peers
		if peers > mostComplete {
			o.observed = fewObserved
		}
	}
	if o.time == 0 {
		o.time = 20 * time.Second
		if peers > 1000 || short {
			o.time = 5 * time.Second
		}
	}
	if o.wait == 0 {
		o.wait = min(max(time.Duration(peers)*10*time.Millisecond, 100*time.Millisecond), time.Second)
	}
	o.contents = min(o.contents, peers)
	return o
}

// An exchangeReport has the experiment's tables.
type exchangeReport struct {
	traffic, lag, work *Table
	modelled           bool
	partly             string // note on how many peers the index has, if not all
}

func newExchangeReport(job *Job, o *exchangeOptions) *exchangeReport {
	const loose = 0.5
	text := func(name, head string) Column { return Column{Name: name, Head: head} }
	number := func(name, head, format string) Column {
		return Column{Name: name, Head: head, Format: format, Loose: loose}
	}
	loosely := func(name, head, format string) Column {
		return Column{Name: name, Head: head, Format: format, Loose: AnyValue}
	}
	title := fmt.Sprintf("%d objects a peer, %.3g %% replaced a minute", o.objects, 100*o.churn)
	r := new(exchangeReport)
	columns := []Column{text("peers", ""), text("loss", "loss %"), text("direction", "")}
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
	r.lag = job.Table("Lag from change to use, and repair: "+title,
		text("peers", ""), text("loss", "loss %"), number("interval", "between publications, s", "%.3g"),
		number("one", "to a peer, median s", "%.2f"), loosely("one99", "99 %", "%.2f"), loosely("worst", "worst", "%.2f"),
		number("all", "to everyone, median s", "%.2f"), loosely("all_worst", "worst", "%.2f"),
		number("broadcast", "broadcast to everyone, median s", "%.1f"),
		loosely("missed", "adverts missed/s and peer", "%.4g"), loosely("repair", "bytes a repair", "%.4g"),
		number("snapshot", "bytes of a snapshot", "%.4g"), loosely("repair_share", "repair of snapshots %", "%.3g"),
		loosely("join", "joined after s", "%.1f"))
	r.work = job.Table("Computing, by observed peers: "+title,
		text("peers", ""), text("loss", "loss %"), number("decoded", "decoded and applied/s and peer", "%.4g"),
		loosely("each", "CPU µs each", "%.4g"), loosely("index", "index, CPU µs each", "%.4g"), loosely("share", "of a core %", "%.3g"))
	return r
}

// skip adds the rows of a cluster that is too large for a short run.
func (r *exchangeReport) skip(peers int, loss float64) {
	r.traffic.skip(peers, 100*loss, "in")
	r.traffic.skip(peers, 100*loss, "out")
	r.lag.skip(peers, 100*loss)
	r.work.skip(peers, 100*loss)
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
			row = append(row, figures(rate, 6))
		}
		r.traffic.Row(append(row, figures(total, 6), figures(broadcast, 6), figures(100*total/broadcast, 6))...)
	}
	missed := float64(w.missed) / seconds / n
	var repair, share any
	if w.repairs > 0 {
		each := float64(w.repairBytes) / float64(w.repairs)
		repair, share = figures(each, 6), figures(100*each/snapshot, 6)
	}
	r.lag.Row(o.peers, 100*o.loss, figures(w.interval(), 4),
		w.lags.quantile(0.5), w.lags.quantile(0.99), w.lags.worst(),
		w.everyone.quantile(0.5), w.everyone.worst(), 30+o.delay.Seconds(),
		figures(missed, 6), repair, figures(snapshot, 6), share, figures(w.joined.Seconds(), 4))
	rate := float64(w.decoded) / seconds / n
	each := w.computing.Seconds() / float64(max(1, w.timed))
	index := w.indexing.Seconds() / float64(max(1, w.learned))
	r.work.Row(o.peers, 100*o.loss, figures(rate, 6), figures(1e6*each, 6), figures(1e6*index, 6), figures(100*rate*(each+index), 6))
	r.modelled = r.modelled || o.observed < o.peers
	if n := o.indexed(); n < o.peers-1 {
		r.partly = fmt.Sprintf("Of %d peers the index has %d, with %d objects in all: the cost of a change is measured on these.", o.peers, n, n*o.objects)
	}
}

func (r *exchangeReport) notes() {
	r.traffic.Note("Every peer runs the engine of gossip/exchange, unchanged. Counted are the bytes that it sends and receives, with the framing of the protocol. Not counted are the headers of UDP, TCP and TLS, the setup of connections, and memberlist's own packets.")
	r.traffic.Note("Adverts: as published, and repeated. Inline: deltas in the same datagram. Answers: to gets, without a body. Snapshots every minute: the same coded filters, sent by every peer to every other.")
	r.lag.Note("A lag is that of a random change of each publication; the worst is that of the oldest change. Repair: all bytes that a peer received because it had missed adverts (repeated adverts, gets and their answers, vectors), for each missed advert, beside the size of a snapshot. Joined after: the time until all peers, which start within two seconds, had all digests.")
	r.lag.Note("Modelled are contents (a few counting filters with real changes, coded, decoded and verified by package digest once; peers with equal contents share the result), membership (known; no peer dies), and the network (delay 0.5 to 1.5 of the mean; a stream retransmits after 0.2 s, 0.4 s and so on). Computing takes no time; the next table has the time that it would take.")
	r.work.Note("One observed peer is measured: it decodes, verifies and applies everything that it gets. The others get as much, and this work is done once for all of them. The measured peer also updates an index of the others. Since many peers have copies of the same contents, that index keeps most positions as rows of bits; --contents makes contents different. Not counted: signatures and the engine. Times depend on the machine.")
	if r.partly != "" {
		r.work.Note("%s", r.partly)
	}
	if r.modelled {
		r.lag.Note("Above %d peers, %d are observed: they know all others. The others know only the observed ones, spread their adverts over the time of a full round, and publish at the full cluster's pace. In anti-entropy observed peers take their places.", mostComplete, fewObserved)
	}
}
