package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
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
	e.Closed = a.settle(ended) != begun
	return res
}

// A squidAnswer lets one decide whether there is an answer: who begins it, or who
// gives it up.
type squidAnswer struct {
	http.ResponseWriter
	mu    sync.Mutex
	state answerState
}

type answerState uint8

const (
	open    answerState = iota
	begun               // the header of a stored response was sent
	refused             // there is nothing to send
	late                // the connection was closed over the wait
	ended               // the handler returned without a word
)

// settle makes the answer s unless it is something already, and returns what it is.
func (a *squidAnswer) settle(s answerState) answerState {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state == open {
		a.state = s
	}
	return a.state
}

// giveUp closes the connection from outside of the handler, which may be waiting
// for a disk that no longer answers.
func (a *squidAnswer) giveUp() {
	if a.settle(late) != late {
		return
	}
	if conn, _, err := http.NewResponseController(a.ResponseWriter).Hijack(); err == nil {
		conn.Close()
	}
}

// Refused implements [cache.Refusable].
func (a *squidAnswer) Refused() { a.settle(refused) }

func (a *squidAnswer) WriteHeader(status int) {
	if status < 200 || a.settle(begun) == begun {
		a.ResponseWriter.WriteHeader(status)
	}
}

func (a *squidAnswer) Write(p []byte) (int, error) {
	if a.settle(begun) != begun {
		return 0, http.ErrHandlerTimeout
	}
	return a.ResponseWriter.Write(p)
}

// ReadFrom lets the kernel move the body.
func (a *squidAnswer) ReadFrom(r io.Reader) (int64, error) {
	if a.settle(begun) != begun {
		return 0, http.ErrHandlerTimeout
	}
	return io.Copy(a.ResponseWriter, r)
}

func (a *squidAnswer) Flush() {
	if a.settle(begun) == begun {
		http.NewResponseController(a.ResponseWriter).Flush()
	}
}
