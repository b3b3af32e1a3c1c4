// Command rateless compares digests with rateless IBLTs, for one change of a cache: with a delta, which needs a base
// that the receiver has, and with a snapshot, which needs none. A rateless IBLT (Yang, Gilad and Alizadeh, "Practical
// Rateless Set Reconciliation", SIGCOMM 2024) needs none either, and is about as long as the difference of two sets,
// whatever their size.
//
//	go run -C sim/rateless .
//
// sketch.go has a coder after the paper. This is a module of its own, so that nothing else has it.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/cputime"
	"github.com/summarycache/summarycache/sim/lab"
)

const (
	keys          = 100_000
	falsePositive = 0.001
	defaultTrials = 10
	// A coded symbol has the exclusive-or of 8-byte items and of their 8-byte hashes, and a count, of which most fit in
	// one byte. Tight ones have 4 bytes for a position below 2^27, and 4 of the hash.
	published, tight = 17, 9
)

var experiment = lab.Experiment{
	Name:    "rateless",
	Summary: "what a change takes as a delta, as a rateless IBLT and as a snapshot",
	Seconds: 25,
	Run:     run,
}

func main() { os.Exit(call(os.Args[1:], os.Stdout, os.Stderr)) }

func call(args []string, stdout, stderr io.Writer) int {
	p := lab.Program{Experiments: lab.Registry{}.Add(experiment), Chapter: func(string) string { return "" }}
	return p.Run(append([]string{experiment.Name}, args...), stdout, stderr)
}

func run(job *lab.Job) error {
	trials := job.Trials
	if trials == 0 {
		trials = defaultTrials
	}
	bytes := func(name, head string) lab.Column {
		return lab.Column{Name: name, Head: head, Format: "%.0f", Loose: 0.15}
	}
	ratio := func(name, head string) lab.Column {
		return lab.Column{Name: name, Head: head, Format: "%.2g", Loose: 0.15}
	}
	cpu := func(name, head string) lab.Column {
		return lab.Column{Name: name, Head: head, Format: "%.1f", Loose: lab.AnyValue}
	}
	table := job.Table(fmt.Sprintf("Bytes for a change of a set of %d keys, f = %g", keys, falsePositive),
		lab.Column{Name: "replaced"}, bytes("delta", "delta"), bytes("tight", "IBLT, 9 bytes a symbol"),
		bytes("published", "IBLT, 17 bytes a symbol"),
		bytes("snapshot", "snapshot"), ratio("to_delta", "tight ÷ delta"), ratio("to_snapshot", "tight ÷ snapshot"),
		cpu("delta_ms", "delta, CPU ms"), cpu("iblt_ms", "IBLT, CPU ms"), cpu("snapshot_ms", "snapshot, CPU ms"))
	for row, replaced := range []int{10, 100, 1000, 10_000} {
		sums := make([]float64, 6)
		for trial := range trials {
			job.Progress("%d replaced, trial %d of %d", replaced, trial+1, trials)
			values, err := change(job, uint64(row), uint64(trial), replaced)
			if err != nil {
				return err
			}
			for i, v := range values {
				sums[i] += v / float64(trials)
			}
		}
		delta, symbols, snapshot := sums[0], sums[1], sums[2]
		table.Row(replaced, delta, tight*symbols, published*symbols, snapshot, tight*symbols/delta, tight*symbols/snapshot,
			sums[3], sums[4], sums[5])
	}
	table.Note("Means of %d changes. Both sides' work, from two filters to the new one at the receiver. The IBLT "+
		"codes the positions of the same filters.", trials)
	return nil
}

// change replaces keys, and returns the bytes of the delta, the coded symbols of the IBLT, the bytes of the snapshot,
// and the milliseconds of CPU time of each.
func change(job *lab.Job, row, trial uint64, replaced int) ([]float64, error) {
	g, err := digest.GeometryFor(keys, falsePositive)
	if err != nil {
		return nil, err
	}
	rng := job.Source(row, trial)
	held, all, base, err := lab.Filled(g, rng, keys)
	if err != nil {
		return nil, err
	}
	lab.ReplaceKeys(held, rng, all[:replaced])
	begin := cputime.Used()
	lap := func() float64 {
		since := cputime.Used() - begin
		begin += since
		return float64(since) / float64(time.Millisecond)
	}
	target, d := held.AdvanceDelta()
	delta, err := d.AppendTo(nil, base)
	if err == nil {
		d, err = digest.DecodeDelta(delta, base, digest.Limits{})
	}
	if err != nil {
		return nil, err
	}
	if _, err := d.Apply(base); err != nil {
		return nil, err
	}
	deltaTime := lap()
	snapshot := target.AppendTo(nil)
	if _, err := digest.DecodeFilter(snapshot, digest.Limits{}); err != nil {
		return nil, err
	}
	snapshotTime := lap()
	symbols, differing := reconcile(base, target)
	ibltTime := lap()
	if want := d.Len(); differing != want {
		return nil, fmt.Errorf("the IBLT has %d positions that differ, and the delta %d", differing, want)
	}
	return []float64{float64(len(delta)), float64(symbols), float64(len(snapshot)), deltaTime, ibltTime, snapshotTime}, nil
}

// reconcile sends coded symbols until the receiver knows which positions differ, and how many do. It ends, with
// probability one, after about 1.35 symbols for each of them.
func reconcile(base, target *digest.Filter) (symbols, differing int) {
	sender, receiver, d := newCoder(), newCoder(), newDecoder()
	for _, p := range target.AppendPositions(nil, 0, int(target.Ones())) {
		sender.add(newItem(p))
	}
	for _, p := range base.AppendPositions(nil, 0, int(base.Ones())) {
		receiver.add(newItem(p))
	}
	for known := false; !known; symbols++ {
		s, own := sender.symbol(), receiver.symbol()
		known = d.add(symbol{s.items ^ own.items, s.hashes ^ own.hashes, s.count - own.count})
	}
	return symbols, d.found
}
