package limitlog

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBounded(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	for name, v := range map[string]any{
		"text": long, "an error": errors.New(long), "bytes": make([]byte, 1<<20), "a struct": &struct{ mask []byte }{make([]byte, 1<<20)},
		"a group": slog.GroupValue(slog.String("a", long)), "many": slog.GroupValue(slices.Repeat([]slog.Attr{slog.String("a", "b")}, 1<<12)...), "a valuer": valuer(long), "lists": []string{long, long},
	} {
		for where, log := range map[string]func(l *slog.Logger){
			"value": func(l *slog.Logger) { l.Info("m", "v", v) }, "fixed value": func(l *slog.Logger) { l.With("v", v).WithGroup("g").Info("m") },
		} {
			for kind, handler := range map[string]func(b *strings.Builder) slog.Handler{
				"text": func(b *strings.Builder) slog.Handler { return slog.NewTextHandler(b, nil) }, "json": func(b *strings.Builder) slog.Handler { return slog.NewJSONHandler(b, nil) },
			} {
				var b strings.Builder
				log(slog.New(New(handler(&b))))
				if b.Len() > 2*MaxValue || !strings.Contains(b.String(), " bytes)") {
					t.Errorf("%s, %s, %s: a line of %d bytes, want at most %d: %.200s", name, where, kind, b.Len(), 2*MaxValue, b.String())
				}
			}
		}
	}
	var b strings.Builder
	slog.New(New(slog.NewTextHandler(&b, nil))).Info(long, "short", "x", "list", []string{"a", "b"}, "n", 1)
	if got := b.String(); b.Len() > 2*MaxValue || !strings.HasSuffix(got, "short=x list=\"[a b]\" n=1\n") {
		t.Errorf("a long message: %d bytes, %.300s", b.Len(), got)
	}
}

// TestCut: what is cut has no part of a character at its end, and is never longer than the bound.
func TestCut(t *testing.T) {
	for _, one := range []string{"a", "ä", "€", "😀", "\x80"} {
		for _, before := range []string{"", "a", "aa", "aaa"} {
			s := before + strings.Repeat(one, MaxValue+1)
			text, note, ok := strings.Cut(cut(s), "…")
			room, least := MaxValue-len("…"+note), MaxValue-len("…"+note)-len(one)
			if one == "\x80" { // no character begins with it
				least = -1
			}
			if !ok || !strings.HasPrefix(s, text) || !utf8.ValidString(text) || len(text) <= least || len(text) > room {
				t.Errorf("cut(%q and %d of %q) = %d bytes and %q", before, MaxValue+1, one, len(text), note)
			}
		}
		for _, n := range []int{0, 1, MaxValue / len(one)} {
			if s := strings.Repeat(one, n); cut(s) != s {
				t.Errorf("cut(%d of %q) = %.20q…, want the same", n, one, cut(s))
			}
		}
	}
}

type valuer string

func (v valuer) LogValue() slog.Value { return slog.StringValue(string(v)) }
