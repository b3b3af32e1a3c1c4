package replay

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"

	"github.com/summarycache/summarycache/cmd/peer/internal/table"
)

// A Way is where an answer came from, by its Cache-Status.
type Way uint8

const (
	Unknown Way = iota // Cache-Status is missing or does not tell
	Local
	Sibling
	Origin
	Shared // the answer to another request, or a validated copy
)

// wayOf reads the last member of Cache-Status, which the cache added that got the request.
func wayOf(h http.Header) Way {
	last, _ := rfc9111.LastStatus(h)
	switch {
	case last.Hit:
		return Local
	case last.Collapsed:
		return Shared
	case last.Detail == "sibling":
		return Sibling
	case last.Fwd != "":
		return Origin
	}
	return Unknown
}

// Counts count the requests to one peer, or to all, and their answers.
type Counts struct {
	Requests int64 `json:"requests"`
	Local    int64 `json:"local_hits"`
	Sibling  int64 `json:"sibling_hits"`
	Shared   int64 `json:"collapsed"`
	Origin   int64 `json:"from_origin"`
	Unknown  int64 `json:"unknown"` // answers whose Cache-Status does not tell
	Failed   int64 `json:"failed"`
	Bytes    int64 `json:"bytes"`
}

// of returns the counter of a way.
func (c *Counts) of(w Way) *int64 {
	return [...]*int64{Unknown: &c.Unknown, Local: &c.Local, Sibling: &c.Sibling, Origin: &c.Origin, Shared: &c.Shared}[w]
}

// Add adds o to c.
func (c *Counts) Add(o Counts) {
	c.Requests += o.Requests
	c.Failed += o.Failed
	c.Bytes += o.Bytes
	for w := range Shared + 1 {
		*c.of(w) += *o.of(w)
	}
}

// A tally has the counts of one peer, and the durations of its answers.
type tally struct {
	Counts
	took []time.Duration
}

// Row describes the answers of one peer, or of all.
type Row struct {
	Peer string `json:"peer"`
	Counts
	P50 float64 `json:"p50_seconds"` // from sending the request to the end of its answer
	P99 float64 `json:"p99_seconds"`
}

// Result describes all answers.
type Result struct {
	Trace      string  `json:"trace"`
	Seconds    float64 `json:"seconds"`
	Peers      []Row   `json:"peers"`
	Total      Row     `json:"total"`
	FirstError string  `json:"first_error"` // "" = none
	Ways       []Way   `json:"-"`           // of each request; Unknown for one without an answer
}

func (p *player) result(elapsed time.Duration) *Result {
	r := &Result{Trace: p.o.Trace.Name, Seconds: elapsed.Seconds(), Ways: p.ways}
	all := tally{Counts: p.total}
	for i := range p.tallies {
		t := &p.tallies[i]
		r.Peers = append(r.Peers, t.row(p.o.Peers[i]))
		all.took = append(all.took, t.took...)
	}
	r.Total = all.row("total")
	if p.first != nil {
		r.FirstError = p.first.Error()
	}
	return r
}

func (t *tally) row(name string) Row {
	slices.Sort(t.took)
	at := func(share float64) float64 {
		if len(t.took) == 0 {
			return 0
		}
		return t.took[min(int(share*float64(len(t.took))), len(t.took)-1)].Seconds()
	}
	return Row{Peer: name, Counts: t.Counts, P50: at(0.5), P99: at(0.99)}
}

// Text returns r as text.
func Text(r *Result) string {
	rate := 0.0
	if r.Seconds > 0 {
		rate = float64(r.Total.Requests) / r.Seconds
	}
	t := table.New("PEER", ">REQUESTS", ">LOCAL", ">SIBLING", ">SHARED", ">ORIGIN", ">UNKNOWN", ">FAILED", ">BYTES", ">P50", ">P99")
	row := func(x Row) {
		t.Row(x.Peer, table.Count(x.Requests), table.Count(x.Local), table.Count(x.Sibling), table.Count(x.Shared), table.Count(x.Origin),
			table.Count(x.Unknown), table.Count(x.Failed), table.Bytes(x.Bytes), millis(x.P50), millis(x.P99))
	}
	for _, x := range r.Peers {
		row(x)
	}
	t.Rule()
	row(r.Total)
	return fmt.Sprintf("%s: %s in %.1f s, %.0f a second\n\n", r.Trace, table.Of(r.Total.Requests, "request"), r.Seconds, rate) + t.Text("")
}

func millis(seconds float64) string { return fmt.Sprintf("%.2f ms", 1000*seconds) }
