package gossip

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A stranger's streams have a port each. They are one cause, of one line a minute, with the number of
// those left out.
func TestMemberlistsLinesOfOneCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		l := memberlistLogger(newLimiter(slog.New(slog.NewTextHandler(&b, nil))))
		for port := range 800 {
			l.Printf("[ERR] memberlist: failed to receive: EOF from=192.0.2.1:%d", 1024+port)
			l.Printf("[WARN] memberlist: Got ping for unexpected node 'x' from=192.0.2.1:%d", 1024+port)
		}
		if got := strings.Count(b.String(), "\n"); got > 2 {
			t.Errorf("%d lines of two causes in a minute", got)
		}
		time.Sleep(limiterQuiet)
		b.Reset()
		l.Printf("[ERR] memberlist: failed to receive: EOF from=192.0.2.1:7")
		if got := b.String(); !strings.Contains(got, "failed to receive") || !strings.Contains(got, "unsaid=799") {
			t.Errorf("a minute later: %q, want one line with 799 left out", got)
		}
	})
}

// However many causes there are, a minute has a bounded number of lines.
func TestLinesOfManyCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		l := newLimiter(slog.New(slog.NewTextHandler(&b, nil)))
		for i := range 10 * limiterSize {
			l.log(slog.LevelWarn, fmt.Sprint(i), "m")
		}
		if got := strings.Count(b.String(), "\n"); got != limiterSize {
			t.Errorf("%d lines in a minute, want %d", got, limiterSize)
		}
		time.Sleep(limiterQuiet)
		b.Reset()
		l.log(slog.LevelWarn, "x", "m")
		if want := fmt.Sprint("unsaid=", 9*limiterSize); !strings.Contains(b.String(), want) {
			t.Errorf("a minute later: %q, want %s", b.String(), want)
		}
	})
}
