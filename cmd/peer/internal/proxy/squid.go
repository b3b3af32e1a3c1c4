package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/cache"
)

// fromSquid reports whether the cache that sent a request is a Squid: it says so
// in the comment of its entry in Via, "1.1 name (squid/5.7)". Our peers make no
// comment.
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

// answerSquid answers the question of a Squid, with a stored response or by
// closing the connection: whatever else we say of our own, its client gets, or it
// does not store what it fetches instead. A Squid that finds the connection closed
// goes to the origin at once. The same happens if the answer does not begin in
// time, for a Squid itself waits for a quarter of an hour.
func (h *Handler) answerSquid(w http.ResponseWriter, r *http.Request, e *Event) cache.Result {
	a := &squidAnswer{ResponseWriter: w}
	clock := time.AfterFunc(h.cfg.SiblingTimeout, a.giveUp)
	res := h.serve(a, r, e)
	clock.Stop()
	a.Refused() // if it said nothing
	e.Closed = a.state.Load() != begun
	return res
}

// A squidAnswer decides whether there is an answer: it has begun, or it was refused or given up.
type squidAnswer struct {
	http.ResponseWriter
	state atomic.Int32 // 0 = undecided
}

const (
	begun  int32 = iota + 1 // the header of a stored response was sent
	closed                  // there is nothing to send, or it came too late
)

// begins reports whether the answer may be sent. From then on it may, or else it never may.
func (a *squidAnswer) begins() bool {
	a.state.CompareAndSwap(0, begun)
	return a.state.Load() == begun
}

// giveUp closes the connection from outside of the handler, which may be waiting
// for a disk that no longer answers.
func (a *squidAnswer) giveUp() {
	if !a.state.CompareAndSwap(0, closed) {
		return
	}
	if conn, _, err := http.NewResponseController(a.ResponseWriter).Hijack(); err == nil {
		conn.Close()
	}
}

// Refused implements [cache.Refusable].
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

// ReadFrom lets the kernel move the body.
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
