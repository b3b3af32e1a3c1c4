package replay

import (
	"net/http"

	"github.com/summarycache/summarycache/gossip/rfc9111"
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

// Result describes all answers.
type Result struct {
	Seconds    float64
	Peers      []Counts // of each peer
	Total      Counts
	FirstError string // "" = none
	Ways       []Way  // of each request; Unknown for one without an answer
}
