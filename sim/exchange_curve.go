package main

import (
	"context"
	"fmt"
	"time"
)

// curveWaits are the times between publications at the points of the curve.
var curveWaits = []time.Duration{500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 2 * time.Second, 3 * time.Second, 5 * time.Second}

// exchangeCurve measures bytes against lag in a large cluster. The cluster is always the
// same, whatever the options.
func exchangeCurve(ctx context.Context, job *Job) error {
	const curvePeers, curveObjects, curveObserved, udpHeaders = 1000, 10_000, 8, 28
	loosely := func(name, head, format string) Column {
		return Column{Name: name, Head: head, Format: format, Loose: AnyValue}
	}
	t := job.Table(fmt.Sprintf("Bytes against lag: %d peers, %d objects each, 1 %% replaced a minute", curvePeers, curveObjects),
		Column{Name: "interval", Head: "between publications, s", Format: "%.3g"},
		loosely("received", "received B/s a peer", "%.4g"), loosely("headers", "headers of IP and UDP besides", "%.4g"),
		loosely("one", "to a peer, median s", "%.2f"), loosely("one99", "99 %", "%.2f"), loosely("all", "to everyone, median s", "%.2f"))
	t.Note("No loss, and the same cluster whatever the options; %d of the peers are observed, for whole waits of 6 s or more. Received: with the framing of the protocol.", curveObserved)
	for _, wait := range curveWaits {
		if job.Short {
			t.skip(wait.Seconds())
			continue
		}
		o := exchangeDefaults()
		o.objects, o.observed, o.wait, o.time = curveObjects, curveObserved, wait, (6*time.Second+wait-1)/wait*wait
		w, err := newExchange(o.of(curvePeers, 0, false), job)
		if err != nil {
			return err
		}
		if err := w.measure(ctx); err != nil {
			return err
		}
		received := 0.0
		for _, n := range w.bytes[in] {
			received += float64(n)
		}
		each := 1 / o.time.Seconds() / curveObserved
		t.Row(wait.Seconds(), figures(received*each, 4), figures(udpHeaders*curvePeers/w.interval(), 4),
			w.lags.quantile(0.5), w.lags.quantile(0.99), w.everyone.quantile(0.5))
	}
	return nil
}
