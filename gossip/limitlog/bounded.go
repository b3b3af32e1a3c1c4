package limitlog

import (
	"fmt"
	"log/slog"
	"unicode/utf8"
)

// MaxValue is the length in bytes of the longest message, and of the longest value, of a line: strangers
// choose many of them, such as a header, a name, the text of an error.
const MaxValue = 1024

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
	case slog.KindGroup, slog.KindAny:
		if v.Kind() == slog.KindGroup {
			v = slog.GroupValue(boundAll(v.Group())...)
		}
		a.Value = v
		if text := v.String(); len(text) > MaxValue {
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
