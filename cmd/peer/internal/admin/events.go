package admin

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// keptEvents is how many lines of the log a peer remembers.
const keptEvents = 100

// An Event is a line of the log.
type Event struct {
	At    time.Time `json:"at"`
	Level string    `json:"level"` // "INFO", "WARN" or "ERROR"
	Text  string    `json:"text"`  // message and attributes
}

// Events is a [slog.Handler] that remembers the last lines, from level Info on. It is safe for concurrent use.
type Events struct {
	text slog.Handler // writes to ring.line
	ring *eventRing
}

// An eventRing is shared by a handler and those derived from it.
type eventRing struct {
	mu     sync.Mutex
	line   bytes.Buffer
	events []Event // the oldest first
}

// NewEvents returns Events without a line.
func NewEvents() *Events {
	m := new(eventRing)
	return &Events{ring: m, text: slog.NewTextHandler(&m.line, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
				return slog.Attr{}
			}
			return a
		},
	})}
}

// Latest returns a copy of the events, the latest first.
func (e *Events) Latest() []Event {
	e.ring.mu.Lock()
	defer e.ring.mu.Unlock()
	all := slices.Clone(e.ring.events)
	slices.Reverse(all)
	return all
}

// Enabled reports whether a line of that level is remembered.
func (e *Events) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle remembers a line.
func (e *Events) Handle(ctx context.Context, r slog.Record) error {
	m := e.ring
	m.mu.Lock()
	defer m.mu.Unlock()
	m.line.Reset()
	err := e.text.Handle(ctx, r)
	text := strings.TrimSpace(r.Message + " " + m.line.String())
	if len(m.events) == keptEvents {
		m.events = slices.Delete(m.events, 0, 1)
	}
	m.events = append(m.events, Event{At: r.Time, Level: r.Level.String(), Text: text})
	return err
}

// WithAttrs returns a handler for lines with these attributes.
func (e *Events) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Events{e.text.WithAttrs(attrs), e.ring}
}

// WithGroup returns a handler for lines with a group of attributes.
func (e *Events) WithGroup(name string) slog.Handler {
	return &Events{e.text.WithGroup(name), e.ring}
}
