package limitlog

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// kept is a limited log, and what it wrote without times.
type kept struct {
	*slog.Logger
	b strings.Builder
}

func newKept() *kept {
	k := new(kept)
	k.Logger = slog.New(New(slog.NewTextHandler(&k.b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	return k
}

// take returns the lines since the last call.
func (k *kept) take() []string {
	defer k.b.Reset()
	return strings.Split(strings.TrimSuffix(k.b.String(), "\n"), "\n")
}

func TestOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		for range 1000 {
			k.Warn("first", "peer", "a", "n", 1)
		}
		k.Error("second", "n", 1)
		time.Sleep(Every - 1)
		k.Warn("first", "peer", "a", "n", 2)
		k.Warn("first", "peer", "b")
		time.Sleep(time.Nanosecond)
		k.Warn("first", "peer", "a", "n", 3)
		k.Warn("first", "peer", "a", "n", 4)
		a := "level=WARN msg=first peer=a n=1"
		want := []string{a, a, a, "level=ERROR msg=second n=1", "level=WARN msg=first peer=b unsaid=998", "level=WARN msg=first peer=a n=3"}
		if got := k.take(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		time.Sleep(AtOnce * Every)
		k.Warn("first", "peer", "c")
		for _, m := range k.Handler().(handler).limits.messages {
			if m.full.After(time.Now()) && len(m.causes) != 1 {
				t.Errorf("%d causes are remembered after minutes, want one", len(m.causes))
			}
		}
	})
}

// Numbers are no cause, and numbers that vary make no more lines.
func TestNumbersAreNoCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		for i := range 100 {
			k.Warn("m", "n", i, "err", fmt.Sprint(i))
			k.Warn("e", "err", errors.New("one"), "n", i)
		}
		if got := k.take(); len(got) != 2*AtOnce {
			t.Errorf("%d lines of two causes, want %d:\n%s", len(got), 2*AtOnce, strings.Join(got, "\n"))
		}
	})
}

// However many causes a message has, its lines are bounded, and those of others are written.
func TestLinesOfManyCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		for i := range 10_000 {
			k.Info("m", "from", fmt.Sprint(i))
		}
		k.Info("other")
		if got := k.take(); len(got) != OfMessage+1 {
			t.Errorf("%d lines at once, want %d", len(got), OfMessage+1)
		}
		for i := range 36_000 {
			time.Sleep(100 * time.Millisecond)
			k.Info("m", "from", fmt.Sprint(i))
		}
		if got := k.take(); len(got) != 600 {
			t.Errorf("%d lines in an hour, want 600", len(got))
		}
	})
}

// Where messages are not constants, their lines are bounded as well, and another's are written when
// those are past.
func TestLinesOfManyMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		for range 4 {
			for i := range 3 * Messages {
				k.Warn(fmt.Sprint(i))
			}
		}
		time.Sleep(2 * AtOnce * Every)
		k.Warn("x")
		lines, unsaid := k.take(), 0
		for _, line := range lines {
			_, number, _ := strings.Cut(line, "unsaid=")
			n, _ := strconv.Atoi(number)
			unsaid += n
		}
		if want := AtOnce*Messages + 1; len(lines) != want || lines[want-1][:len("level=WARN msg=x ")] != "level=WARN msg=x " || unsaid != 9*Messages {
			t.Errorf("%d lines, of which the last is %q, and %d left out; want %d and %d", len(lines), lines[len(lines)-1], unsaid, want, 9*Messages)
		}
	})
}

// Lines for debugging are all written, and a limited log is not limited again.
func TestWhatIsNotLimited(t *testing.T) {
	k := newKept()
	if New(k.Handler()) != k.Handler() {
		t.Error("New limits a log twice")
	}
	for range 1000 {
		k.Debug("m")
	}
	if got := k.take(); len(got) != 1000 {
		t.Errorf("%d of 1000 lines for debugging", len(got))
	}
}
