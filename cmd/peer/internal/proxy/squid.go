package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// fromSquid reports whether the cache that sent a request is a Squid, by the comment of its member
// of Via: "1.1 name (squid/5.7)". Peers write no comment.
func fromSquid(h http.Header) bool {
	lines := h["Via"]
	if len(lines) == 0 {
		return false
	}
	last := lines[len(lines)-1]
	last = last[strings.LastIndexByte(last, ',')+1:]
	_, comment, ok := strings.Cut(last, "(")
	return ok && strings.HasPrefix(strings.ToLower(comment), "squid")
}

// answerSquid answers a Squid's lookup request, with a stored response or by closing the
// connection. A Squid would pass any other answer of ours on to its client, or would not store
// what it fetches instead. When the connection is closed it goes to the origin at once. It is
// also closed if the answer does not begin in time, since a Squid waits for a quarter of an hour.
func (h *Handler) answerSquid(w http.ResponseWriter, r *http.Request, v *appliedSettings, e *Event) engine.Result {
	a := &squidAnswer{ResponseWriter: w}
	clock := time.AfterFunc(h.cfg.SiblingTimeout, a.giveUp)
	res := h.serve(a, r, v, e)
	clock.Stop()
	a.Refused() // no effect if the answer has begun
	e.Closed = a.state.Load() != begun
	return res
}

// A squidAnswer is a ResponseWriter that sends either a whole answer or nothing.
type squidAnswer struct {
	http.ResponseWriter
	state atomic.Int32 // 0 = undecided
}

const (
	begun  int32 = iota + 1 // a stored response is being sent
	closed                  // there was none, or it came too late
)

// begins reports whether the answer may be sent, and decides that for good.
func (a *squidAnswer) begins() bool {
	a.state.CompareAndSwap(0, begun)
	return a.state.Load() == begun
}

// giveUp closes the connection, from another goroutine than the handler's, which may be blocked by
// a disk that does not respond.
func (a *squidAnswer) giveUp() {
	if !a.state.CompareAndSwap(0, closed) {
		return
	}
	if conn, _, err := http.NewResponseController(a.ResponseWriter).Hijack(); err == nil {
		conn.Close()
	}
}

// Refused implements [engine.Refusable].
func (a *squidAnswer) Refused() { a.state.CompareAndSwap(0, closed) }

func (a *squidAnswer) WriteHeader(status int) {
	if status < 200 || a.begins() {
		a.ResponseWriter.WriteHeader(status)
	}
}

func (a *squidAnswer) Write(p []byte) (int, error) {
	if !a.begins() {
		return 0, http.ErrHandlerTimeout
	}
	return a.ResponseWriter.Write(p)
}

// ReadFrom lets the kernel copy the body from a file.
func (a *squidAnswer) ReadFrom(r io.Reader) (int64, error) {
	if !a.begins() {
		return 0, http.ErrHandlerTimeout
	}
	return io.Copy(a.ResponseWriter, r)
}

func (a *squidAnswer) Flush() {
	if a.begins() {
		http.NewResponseController(a.ResponseWriter).Flush()
	}
}
