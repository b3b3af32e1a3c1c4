package admin

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

func TestEvents(t *testing.T) {
	var written bytes.Buffer
	events := NewEvents()
	text := slog.NewTextHandler(&written, &slog.HandlerOptions{Level: slog.LevelWarn})
	log := slog.New(slog.NewMultiHandler(text, events)).With("peer", "a")
	log.Debug("neither")
	log.Info("remembered", "n", 1)
	log.WithGroup("g").Error("both", "why", "a b")
	var got []string
	for _, e := range events.Latest() {
		got = append(got, e.Level+" "+e.Text)
	}
	if want := `[ERROR both peer=a g.why="a b" INFO remembered peer=a n=1]`; fmt.Sprint(got) != want {
		t.Errorf("Latest() = %v, want %v", got, want)
	}
	if text := written.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `msg=both peer=a g.why="a b"`) {
		t.Errorf("passed on: %q", text)
	}
}

func TestEventsAreBounded(t *testing.T) {
	events := NewEvents()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range keptEvents {
				slog.New(events).Warn("line", "i", i)
			}
		})
	}
	all.Wait()
	slog.New(events).Warn("last")
	if got := events.Latest(); len(got) != keptEvents || got[0].Text != "last" || got[1].Text == "" {
		t.Errorf("%d events, the latest %+v", len(got), got[0])
	}
}
