package simulation

import (
	"encoding/json"
	"testing"
)

// shrunk looks for a smaller schedule that breaks the same promise: it leaves out halves of
// the faults, then of the requests, then quarters, and so on, as long as the rest still
// fails. Without replay a schedule need not fail each time, so each is tried twice.
func shrunk(t *testing.T, s schedule, kind string) []byte {
	left := *shrink
	fails := func(s schedule) bool {
		for range 2 {
			if left--; left < 0 {
				return false
			}
			for _, v := range guarded(t, s).wrong {
				if v.kind == kind {
					return true
				}
			}
		}
		return false
	}
	if left < 4 || !fails(s) {
		return nil
	}
	s.Faults = without(s.Faults, func(f []fault) bool { c := s; c.Faults = f; return fails(c) })
	s.Requests = without(s.Requests, func(r []request) bool { c := s; c.Requests = r; return fails(c) })
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// without returns the list without the parts that are not needed for the failure. It ends: each
// round leaves a part out or halves the parts, down to one element.
func without[T any](list []T, fails func([]T) bool) []T {
	for part := (len(list) + 1) / 2; part > 0 && len(list) > 0; {
		less := false
		for at := 0; at < len(list); {
			end := min(at+part, len(list))
			c := append(append([]T{}, list[:at]...), list[end:]...)
			if fails(c) {
				list, less = c, true
			} else {
				at = end
			}
		}
		switch {
		case part == 1 && !less:
			return list
		case part > 1:
			part = (part + 1) / 2
		}
	}
	return list
}
