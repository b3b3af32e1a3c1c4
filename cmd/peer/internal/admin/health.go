package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/health"
)

// Health is the health of a peer.
type Health struct {
	OK    bool          `json:"ok"`    // no part hangs: /healthz answers 200
	Parts []health.Part `json:"parts"` // that are watched
	// Degraded are the faults of a peer that serves, though not as well as it could.
	Degraded []Trouble `json:"degraded"`
	// Missing are the parts of this status that did not answer in time: their values are
	// the last known ones.
	Missing []string `json:"missing"`
}

// A Trouble is one fault.
type Trouble struct {
	Part   string `json:"part"`   // "config", "upgrade", "store", "origin", "siblings", "cluster" or "machine"
	Text   string `json:"text"`   // a sentence without its full stop
	Severe bool   `json:"severe"` // the part does little of its work
}

// degradable are the values of Trouble.Part.
var degradable = []string{"config", "upgrade", "store", "origin", "siblings", "cluster", "machine"}

// lines returns a line for each fault; "" = there is none.
func (h Health) lines() string {
	var b strings.Builder
	for _, p := range h.Parts {
		if p.Hangs {
			fmt.Fprintf(&b, "%s hangs: no progress for %s though there was work\n", p.Name, seconds(p.Stalled))
		}
	}
	for _, t := range h.Degraded {
		fmt.Fprintf(&b, "degraded: %s: %s\n", t.Part, t.Text)
	}
	return b.String()
}

// serveHealth calls no part of the peer, so that it always answers.
func serveHealth(mux *http.ServeMux, s Source) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		h, status := s.Health(), http.StatusOK
		if !h.OK {
			status = http.StatusServiceUnavailable
		}
		plain(w, status, cmp.Or(h.lines(), "ok\n"))
	})
}

// answerWithin limits the time of an answer of the admin listener while a part of the
// peer hangs, so that it arrives within a second.
const answerWithin = 900 * time.Millisecond

// within responds with the result of f, or with 503 if f takes too long.
func within(w http.ResponseWriter, s Source, failure int, f func() (any, error)) {
	done := make(chan func(), 1)
	go func() {
		v, err := f()
		done <- func() { respond(w, failure, v, err) }
	}()
	select {
	case write := <-done:
		write()
	case <-time.After(answerWithin):
		plain(w, http.StatusServiceUnavailable, "no answer within a second\n"+s.Health().lines())
	}
}
