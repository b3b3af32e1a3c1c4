package digest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestMisuse: zero values and nil arguments give an error, or panic with what to do instead.
func TestMisuse(t *testing.T) {
	real := emptyFilter(geometries[2], 1)
	var nilFilter *Filter
	for name, f := range map[string]func(){
		"a nil Filter":                func() { nilFilter.MayContain(1) },
		"a zero Filter, encoded":      func() { new(Filter).AppendTo(nil) },
		"a zero Filter, in pieces":    func() { new(Filter).AppendPieces(nil, 0) },
		"the difference of none":      func() { Diff(real, nil) },
		"the difference from none":    func() { Diff(nil, real) },
		"a bare delta without base":   func() { DecodeBare([]byte{0}, nil, 1, 1, Limits{}) },
		"a nil CountingFilter":        func() { (*CountingFilter)(nil).Add(1) },
		"a history of nothing":        func() { NewHistory(1).Advance(nil) },
		"a history of nothing, again": func() { NewHistory(1).AdvanceDelta(nil, nil) },
		"OpenFilter of nothing":       func() { OpenFilter(nil, nil, Limits{}) },
		"a nil FilterAt":              func() { (*FilterAt)(nil).MayContain(1) },
		"FilterOf nil":                func() { FilterOf(geometries[2], Version{}, nil) },
		"Replace with nil":            func() { real, _ := PlanSet(1, 0.1, Opaque, 0, 1); real.Replace(nil) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, ": use ") {
					t.Errorf("%s: panics with %q", name, got)
				}
			}()
			f()
		}()
	}
	if _, err := new(Delta).Apply(nil); !errors.Is(err, ErrBase) {
		t.Errorf("a delta applied to nothing: %v", err)
	}
	h := NewHistory(1)
	h.Advance(real)
	h.AdvanceDelta(real, nil)
}
