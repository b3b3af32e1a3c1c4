// Package limitlog bounds what a program writes to its log, so that neither strangers nor a failing disk
// can fill it. Counters have the exact numbers.
//
// A cause is a message together with the text of the line's first value: a peer's name, an address, an
// error. Messages are constants, and what varies is a value, the most telling one first.
package limitlog

import (
	"context"
	"hash/maphash"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// Of one cause, AtOnce lines are written and then one per Every. Of one message, with all its causes,
// ten times as many are written each Every, and OfMessage at once. Of more than Messages messages that
// are written within a minute, the others are left out.
const (
	Every     = time.Minute
	AtOnce    = 3
	OfMessage = 20
	Messages  = 256
)

// New returns a handler that passes lines on to next, with messages and values of at most [MaxValue]
// bytes, and from [slog.LevelInfo] on at most as many as the constants say. The first line of a message
// after some were left out has their number as "unsaid". Values that are costly to make should be of
// type [slog.LogValuer]. The handler is safe for concurrent use if next is. A handler that New has made
// is returned as it is.
func New(next slog.Handler) slog.Handler {
	if h, ok := next.(handler); ok {
		return h
	}
	return handler{next, &limits{seed: maphash.MakeSeed(), messages: make(map[uint64]*message)}}
}

// handler shares its limits with those derived from it.
type handler struct {
	slog.Handler
	limits *limits
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	unsaid := 0
	if r.Level >= slog.LevelInfo {
		var due bool
		if due, unsaid = h.limits.due(r.Message, firstText(r), time.Now()); !due {
			return nil
		}
	}
	out := slog.NewRecord(r.Time, r.Level, cut(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool { out.AddAttrs(bound(a)); return true })
	if unsaid > 0 {
		out.AddAttrs(slog.Int("unsaid", unsaid))
	}
	return h.Handler.Handle(ctx, out)
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.limits}
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(boundAll(attrs)), h.limits}
}

// firstText returns the first value of a line, unless it is a number or a time.
func firstText(r slog.Record) (text string) {
	r.Attrs(func(a slog.Attr) bool {
		if v := a.Value.Resolve(); v.Kind() == slog.KindString || v.Kind() == slog.KindAny {
			text = v.String()
		}
		return false
	})
	return text
}

// limits has the messages of the last minutes.
type limits struct {
	seed     maphash.Seed
	mu       sync.Mutex
	messages map[uint64]*message
	beyond   int // lines left out, since the last one, of messages that are not remembered
}

// A message has as many causes as lines of it were written in the last AtOnce minutes.
type message struct {
	full   time.Time            // when its bucket is full again
	causes map[uint64]time.Time // the same of each cause
	unsaid int                  // lines left out since the last one
}

// due reports whether a line is written, and how many were left out before it.
func (l *limits) due(text, cause string, now time.Time) (due bool, unsaid int) {
	by := maphash.String(l.seed, cause)
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.message(text, now)
	if m == nil {
		l.beyond++
		return false, 0
	}
	all, one := taken(m.full, now, Every/10), taken(m.causes[by], now, Every)
	if all.Sub(now) > OfMessage*Every/10 || one.Sub(now) > AtOnce*Every {
		m.unsaid++
		return false, 0
	}
	maps.DeleteFunc(m.causes, func(_ uint64, full time.Time) bool { return !full.After(now) })
	unsaid = m.unsaid + l.beyond
	m.full, m.causes[by], m.unsaid, l.beyond = all, one, 0, 0
	return true, unsaid
}

// message returns the record of a message; nil if there are too many.
func (l *limits) message(text string, now time.Time) *message {
	key := maphash.String(l.seed, text)
	if m := l.messages[key]; m != nil {
		return m
	}
	maps.DeleteFunc(l.messages, func(_ uint64, m *message) bool {
		idle := now.Sub(m.full) > AtOnce*Every
		if idle {
			l.beyond += m.unsaid
		}
		return idle
	})
	if len(l.messages) == Messages {
		return nil
	}
	m := &message{full: now, causes: make(map[uint64]time.Time)}
	l.messages[key] = m
	return m
}

// taken returns when a bucket of tokens is full again after one more is taken from it, at one token
// an interval.
func taken(full, now time.Time, interval time.Duration) time.Time {
	if full.Before(now) {
		full = now
	}
	return full.Add(interval)
}
