package engine

import (
	"net/http"
	"testing"
)

// TestSpan: an answer has the part that its Content-Range says, or none if that makes no sense.
func TestSpan(t *testing.T) {
	type span struct{ from, to, size int64 }
	none := span{0, 0, -1}
	for name, tt := range map[string]struct {
		status int
		ranged string
		want   span
	}{
		"the whole":                  {200, "", span{0, 100, 100}},
		"the whole, with a range":    {200, "bytes 5-9/50", span{0, 100, 100}},
		"a part":                     {206, "bytes 5-9/50", span{5, 10, 50}},
		"one byte":                   {206, "bytes 5-5/50", span{5, 6, 50}},
		"the last byte":              {206, "bytes 49-49/50", span{49, 50, 50}},
		"beyond the end":             {206, "bytes 5-50/50", none},
		"backwards":                  {206, "bytes 5-4/50", none},
		"before the beginning":       {206, "bytes -5-9/50", none},
		"no first byte":              {206, "bytes -9/50", none},
		"no last byte":               {206, "bytes 5-/50", none},
		"of an unknown size":         {206, "bytes 5-9/*", span{5, 10, -1}},
		"of a size that overflows":   {206, "bytes 5-9/9223372036854775808", none},
		"a first byte that is none":  {206, "bytes x-9/50", none},
		"a last byte that overflows": {206, "bytes 5-9223372036854775808/50", none},
		"no part of it":              {206, "bytes */50", none},
		"none said":                  {206, "", none},
	} {
		a := &answer{status: tt.status, length: 100, header: http.Header{"Content-Range": {tt.ranged}}}
		if from, to, size := a.span(); (span{from, to, size}) != tt.want {
			t.Errorf("%s: span() of %q = %d, %d, %d, want %+v", name, tt.ranged, from, to, size, tt.want)
		}
	}
}
