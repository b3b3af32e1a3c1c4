package admin

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Health is how a peer does.
type Health struct {
	OK    bool   `json:"ok"`    // no part hangs: what /healthz says by 200
	Parts []Part `json:"parts"` // those that are watched
	// Degraded is what goes wrong without anything being hung: the peer serves, and
	// not as well as it could.
	Degraded []Trouble `json:"degraded"`
	// Missing are the parts of this status that did not answer in time: what stands
	// for them is what they said last.
	Missing []string `json:"missing"`
}

// A Part is how one watched part of a peer does.
type Part struct {
	Name    string  `json:"name"`
	Hangs   bool    `json:"hangs"`           // no progress for too long, though there was work
	Stalled float64 `json:"stalled_seconds"` // for how long; 0 = there is no work
}

// A Trouble is one thing that goes wrong.
type Trouble struct {
	Part   string `json:"part"`   // "store", "origin", "siblings", "cluster" or "machine"
	Text   string `json:"text"`   // a sentence without its full stop
	Severe bool   `json:"severe"` // it costs most of what the part is for
}

// degradable are the parts of troubles.
var degradable = []string{"store", "origin", "siblings", "cluster", "machine"}

// lines says what is wrong, one thing a line; "" = nothing is.
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

// serveHealth answers by what is known without asking any part, and so always.
func serveHealth(mux *http.ServeMux, s Source) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		h := s.Health()
		switch text := h.lines(); {
		case !h.OK:
			plain(w, http.StatusServiceUnavailable, text)
		case text != "":
			plain(w, http.StatusOK, text)
		default:
			plain(w, http.StatusOK, "ok\n")
		}
	})
}

// answerWithin is how long an answer of the admin listener may take to be made,
// when a part of the peer hangs: with its way it is there within a second.
const answerWithin = 900 * time.Millisecond

// within responds with what f returns, or with 503 if that takes too long.
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
		plain(w, http.StatusServiceUnavailable, "no answer within a second; /healthz says what hangs\n"+s.Health().lines())
	}
}
