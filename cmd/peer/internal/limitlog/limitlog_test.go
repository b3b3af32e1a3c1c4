package limitlog

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		l := &Logger{Log: slog.New(slog.NewTextHandler(&b, nil))}
		for range 3 {
			l.Warn("a", "first", "n", 1)
		}
		l.Error("b", "second")
		time.Sleep(Every - 1)
		l.Warn("a", "first")
		time.Sleep(time.Nanosecond)
		l.Warn("a", "first", "n", 2)
		var got []string
		for line := range strings.Lines(b.String()) {
			_, said, _ := strings.Cut(strings.TrimSpace(line), "level=")
			got = append(got, said)
		}
		want := []string{"WARN msg=first n=1", "ERROR msg=second", "WARN msg=first n=2 unsaid=3"}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if len(l.last) != 1 {
			t.Errorf("%d keys are remembered after a minute, want one", len(l.last))
		}
	})
}

func TestLinesOfManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		l := &Logger{Log: slog.New(slog.NewTextHandler(&b, nil))}
		for i := range 3 * Keys {
			l.Warn(fmt.Sprint(i), "m")
		}
		if got := strings.Count(b.String(), "\n"); got != Keys {
			t.Errorf("%d lines in a minute, want %d", got, Keys)
		}
		time.Sleep(Every)
		b.Reset()
		l.Warn("x", "m")
		if want := fmt.Sprint("unsaid=", 2*Keys); !strings.Contains(b.String(), want) {
			t.Errorf("a minute later: %q, want %s", b.String(), want)
		}
	})
}
