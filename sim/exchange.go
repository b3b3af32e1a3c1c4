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
	Flags: func(flags *flag.FlagSet) any {
		o := &exchangeOptions{flags: flags}
		flags.IntVar(&o.peers, "peers", 0, "")
		flags.IntVar(&o.objects, "objects", 100_000, "")
		flags.Float64Var(&o.churn, "churn", 0.01, "")
		flags.Float64Var(&o.loss, "loss", -1, "")
		flags.DurationVar(&o.time, "time", 0, "")
		flags.DurationVar(&o.delay, "delay", 10*time.Millisecond, "")
		flags.IntVar(&o.observed, "observed", 0, "")
		flags.IntVar(&o.contents, "contents", 8, "")
		flags.DurationVar(&o.wait, "wait", 0, "")
		return o
	},
	Help: `flags of exchange:
  --peers N       how many peers: 2 to 10,000; without it 10, 100 and 1,000, and the bytes
                  that 1,000 peers of 10,000 objects take at several waits, against the lag
  --objects N     that each holds: 1,000 to 1,000,000 (default 100,000)
  --churn S       share of them replaced in a minute (default 0.01)
  --loss S        share of datagrams lost, 0 to 0.9; without it both 0 and 0.3
  --time T        measured, in virtual time (default 20s, 5s above 1,000 peers)
  --delay T       of the network one way, on average (default 10ms)
  --observed N    how many peers know all others; the rest know only these. Default: all
                  for up to 300 peers, 32 above
  --contents N    how many different caches there are; the other peers have copies of
                  their contents (default 8)
  --wait T        between publications (default 10 ms for each peer, 0.1 to 1 s)
`,
	Run: runExchange,
})

type exchangeOptions struct {
	peers    int
	objects  int
	churn    float64 // share of the objects replaced in a minute
	loss     float64 // of datagrams; negative for none and for 30 %
	time     time.Duration
	delay    time.Duration
	observed int
	contents int
	wait     time.Duration
	flags    *flag.FlagSet // that they were read from; nil if from nowhere
}

// given reports whether an option was said, rather than left to its default.
func (o *exchangeOptions) given(name string) (given bool) {
	if o.flags != nil {
		o.flags.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	}
	return given
}

var exchangePeers = []int{10, 100, 1000} // more takes minutes

const (
	exchangeLoss  = 0.3
	mostExchanged = 10000
	mostComplete  = 300 // peers of which each knows all others without being told to
	mostObserved  = 1000
	fewObserved   = 32
)

func (o *exchangeOptions) validate() error {
	switch {
	case (o.peers != 0 || o.given("peers")) && (o.peers < 2 || o.peers > mostExchanged):
		return usagef("--peers %d: want 2 to %d", o.peers, mostExchanged)
	case o.objects < 1000 || o.objects > 1_000_000:
		return usagef("--objects %d: want 1,000 to 1,000,000", o.objects)
	case !(o.churn > 0 && o.churn <= 10):
		return usagef("--churn %v: want above 0, to 10", o.churn)
	case o.loss > 0.9 || o.loss < 0 && o.given("loss"):
		return usagef("--loss %v: want 0 to 0.9", o.loss)
	case o.time < 0 || o.time > time.Hour || o.time == 0 && o.given("time"):
		return usagef("--time %v: want above 0, to an hour", o.time)
	case o.delay < 0 || o.delay > time.Second:
		return usagef("--delay %v: want up to a second", o.delay)
	case (o.observed != 0 || o.given("observed")) && (o.observed < 2 || o.observed > mostObserved):
		return usagef("--observed %d: want 2 to %d", o.observed, mostObserved)
	case o.wait < 0 || o.wait > time.Minute || o.wait == 0 && o.given("wait"):
		return usagef("--wait %v: want above 0, to a minute", o.wait)
	case o.contents < 1 || o.contents > 1000:
		return usagef("--contents %d: want 1 to 1,000", o.contents)
	}
	return nil
}

func runExchange(ctx context.Context, job *Job) error {
	o, _ := job.options.(*exchangeOptions)
	if o == nil {
		o = &exchangeOptions{objects: 100_000, churn: 0.01, loss: -1, delay: 10 * time.Millisecond, contents: 8}
	}
	if err := o.validate(); err != nil {
		return err
	}
	counts, losses := exchangePeers, []float64{0, exchangeLoss}
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

// of is the options for one cluster, with the defaults that depend on its size.
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
		if peers > 1000 {
			o.time = 5 * time.Second
		}
		if short {
			o.time = 5 * time.Second
		}
	}
	if o.wait == 0 {
		o.wait = min(max(time.Duration(peers)*10*time.Millisecond, 100*time.Millisecond), time.Second)
	}
	o.contents = min(o.contents, peers)
	return o
}

// An exchangeReport is the experiment's tables.
type exchangeReport struct {
	traffic, lag, work *Table
	modelled           bool
	partly             string // what the index has, if it is not everyone's
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
	for i, k := range kinds {
		c := loosely(k.name, k.head, "%.4g")
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

// skip makes the rows of a cluster too large for a short run.
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
		r.partly = fmt.Sprintf("Of %d peers the index has %d, which is %d objects: what a change costs is that of theirs.", o.peers, n, n*o.objects)
	}
}

func (r *exchangeReport) notes() {
	r.traffic.Note("Every peer runs the engine of gossip/exchange, unchanged. Counted is what it sends and receives, framing of the protocol included; not the headers of UDP, TCP and TLS, setting up connections, and memberlist's own packets.")
	r.traffic.Note("Adverts: as published, and repeated. Inline: deltas in the same datagram. Answers: to gets, without a body. Snapshots every minute: the same filters, as coded, from everyone to everyone.")
	r.lag.Note("A lag is that of a change drawn at random from each publication; worst is that of the oldest. Repair: everything a peer received to make up for adverts that it missed (repeated adverts, gets and their answers, vectors), for each that it missed, against a snapshot. Joined after: until everyone, started within two seconds, had everyone's digest.")
	r.lag.Note("Modelled: contents (a few counting filters with real changes, coded, decoded and verified by package digest once; peers with equal contents share the result), membership (known, nobody dies), the network (delay 0.5 to 1.5 of the mean; a stream repeats what is lost after 0.2 s, 0.4 s and so on). Computing takes no time; what it would take is in the next table.")
	r.work.Note("One of the observed peers decodes, verifies and applies for itself everything that it gets, and is measured; the others get as much, and it is done once for all of them. It has an index of the others, too, which is brought up to date. As many peers have copies of the same contents, that index keeps most positions as rows of bits; --contents makes them different. Not counted: signatures, the engine. Times depend on the machine.")
	if r.partly != "" {
		r.work.Note("%s", r.partly)
	}
	if r.modelled {
		r.lag.Note("Above %d peers, %d are observed: they know all others. The others know these only, spread their adverts over the time a full round takes, publish at the full cluster's pace, and take no part in anti-entropy, in which observed peers stand in for them.", mostComplete, fewObserved)
	}
}
