package systems

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/sim/lab"
)

// exchanged measures a cluster.
func exchanged(t *testing.T, o exchangeOptions) *exchange {
	t.Helper()
	o.objects, o.churn, o.delay, o.contents = exchangedObjects, 0.1, 10*time.Millisecond, 4
	w, err := newExchange(o.of(o.peers, o.loss, true), lab.Quiet(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.measure(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *exchange) sum(direction int) (sum float64) {
	for _, n := range w.bytes[direction] {
		sum += float64(n)
	}
	return sum / float64(w.options.observed)
}

// TestExchangeEndsInStep compares every replica with its origin's filter.
func TestExchangeEndsInStep(t *testing.T) {
	w := exchanged(t, exchangeOptions{peers: 8, loss: 0.3})
	w.options.churn = 0
	if err := w.run(w.now.Add(30*time.Second), "resting"); err != nil {
		t.Fatal(err)
	}
	for _, p := range w.peers {
		for _, q := range w.peers {
			if r, _ := p.engine.Replica(q.name); p != q && r.Head != q.engine.Self() {
				t.Errorf("%s holds %v of %s, not %v", p.name, r.Head.Version, q.name, q.engine.Self().Version)
			}
		}
	}
	if w.missed == 0 || w.repairs == 0 {
		t.Errorf("at 30 %% loss %d adverts were missed and %d repaired", w.missed, w.repairs)
	}
}

// TestExchangeObserved observes all peers, and then half of them. The results must not differ.
func TestExchangeObserved(t *testing.T) {
	if testing.Short() || raceEnabled { // whose clusters are small
		t.Skip("a large cluster in one goroutine")
	}
	all := exchanged(t, exchangeOptions{peers: 40})
	half := exchanged(t, exchangeOptions{peers: 40, observed: 20})
	for d, direction := range []string{"in", "out"} {
		if a, b := all.sum(d), half.sum(d); math.Abs(a-b) > 0.1*a {
			t.Errorf("%s: %.0f bytes a peer with all observed, %.0f with half", direction, a, b)
		}
	}
	a, b := all.everyone.quantile(0.5).(float64), half.everyone.quantile(0.5).(float64)
	if math.Abs(a-b) > 0.15*a {
		t.Errorf("to everyone: %.3f s with all observed, %.3f s with half", a, b)
	}
}

// TestExchangeBytes: if nothing is lost, all that is sent arrives.
func TestExchangeBytes(t *testing.T) {
	w := exchanged(t, exchangeOptions{peers: 10})
	sent, received := w.sum(out), w.sum(in)
	if math.Abs(sent-received) > 0.02*sent || sent == 0 {
		t.Errorf("%.0f bytes sent, %.0f received", sent, received)
	}
	if w.missed != 0 || w.repairs != 0 {
		t.Errorf("without loss %d adverts were missed and %d repaired", w.missed, w.repairs)
	}
	if worst := w.lags.worst().(float64); worst > 2 {
		t.Errorf("without loss a change took %.1f s", worst)
	}
}

func TestExchangeArguments(t *testing.T) {
	for _, args := range [][]string{
		{"--peers", "1"}, {"--peers", "10001"}, {"--objects", "10"}, {"--loss", "0.95"}, {"--churn", "0"},
		{"--time", "2h"}, {"--delay", "2s"}, {"--observed", "1"}, {"--contents", "0"},
		{"--peers", "0"}, {"--observed", "0"}, {"--time", "0s"}, {"--loss", "-1"},
	} {
		if code, _, errs := call(t, append([]string{"exchange"}, args...)...); code != 2 || !strings.Contains(errs, args[0][1:]) {
			t.Errorf("exchange %v: %d, %q, want 2 and the flag by name", args, code, errs)
		}
	}
	code, text, _ := call(t, "exchange", "--peers", "4", "--objects", "1000", "--time", "2s")
	_, again, _ := call(t, "exchange", "--peers", "4", "--objects", "1000", "--time", "2s")
	text, _, _ = strings.Cut(text, "Computing,") // which has times
	again, _, _ = strings.Cut(again, "Computing,")
	if code != 0 || text != again {
		t.Errorf("equal seeds print\n%s\nand\n%s", text, again)
	}
}

func TestEventQueue(t *testing.T) {
	var q eventQueue
	for i := range 1000 {
		q.push(time.Duration(i*7919%101)*time.Millisecond, nil)
	}
	for last := (event{}); len(q.events) > 0; {
		e := q.pop()
		if e.at < last.at || e.at == last.at && e.number < last.number {
			t.Fatalf("%d at %v after %d at %v", e.number, e.at, last.number, last.at)
		}
		last = e
	}
}

// TestExchangeMeasuresOneReceiver: decoding is counted for all observed peers, and measured at
// only one of them. The index of this peer is bounded, however many peers there are.
func TestExchangeMeasuresOneReceiver(t *testing.T) {
	w := exchanged(t, exchangeOptions{peers: 8})
	if w.timed == 0 || w.timed > w.decoded/4 || w.learned == 0 || w.learned > w.timed {
		t.Errorf("of %d changes at 8 peers one decoded %d and learned %d", w.decoded, w.timed, w.learned)
	}
	if got := w.peers[0].index.Len(); got != 7 {
		t.Errorf("the index has %d peers, not all 7 others", got)
	}
	for _, c := range []struct{ peers, objects, want int }{{2, 1000, 1}, {1000, 100_000, 999}, {1000, 1_000_000, 100}, {10_000, 1_000_000, 100}} {
		if o := (exchangeOptions{peers: c.peers, objects: c.objects}); o.indexed() != c.want {
			t.Errorf("of %d peers of %d objects %d are indexed, not %d", c.peers, c.objects, o.indexed(), c.want)
		}
	}
}
