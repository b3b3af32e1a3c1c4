package limitlog

import (
	"context"
	"fmt"
	"log/slog"
	"unicode/utf8"
)

// MaxValue is the length in bytes of the longest message, and of the longest value, of a line.
const MaxValue = 1024

// Bounded returns a handler that cuts messages and values to [MaxValue], since strangers choose many of
// them: a header, a name, the text of an error. It passes the lines on to next.
func Bounded(next slog.Handler) slog.Handler { return bounded{next} }

type bounded struct{ slog.Handler }

func (b bounded) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, cut(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool { out.AddAttrs(bound(a)); return true })
	return b.Handler.Handle(ctx, out)
}

func (b bounded) WithGroup(name string) slog.Handler { return bounded{b.Handler.WithGroup(name)} }

func (b bounded) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bounded{b.Handler.WithAttrs(boundAll(attrs))}
}

func boundAll(attrs []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = bound(a)
	}
	return out
}

func bound(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(cut(v.String()))
	case slog.KindGroup:
		a.Value = slog.GroupValue(boundAll(v.Group())...)
	case slog.KindAny:
		a.Value = v
		if text := fmt.Sprintf("%+v", v.Any()); len(text) > MaxValue {
			a.Value = slog.StringValue(cut(text))
		}
	default:
		a.Value = v
	}
	return a
}

// cut returns a text of at most MaxValue bytes, with the length of what was longer.
func cut(s string) string {
	if len(s) <= MaxValue {
		return s
	}
	note := fmt.Sprintf("… (%d bytes)", len(s))
	end := MaxValue - len(note)
	for end > 0 && !utf8.RuneStart(s[end]) { // at most three times in valid text
		end--
	}
	return s[:end] + note
}
