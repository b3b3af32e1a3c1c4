package main

import (
	"testing"
	"time"
)

// The rows that an eighth of the requests can tell.
func TestTargets(t *testing.T) {
	for _, sc := range scenarios {
		switch sc.name {
		case "herd":
			if r := measure(t, sc, systems[0], 8); r.fetches != herdKeys {
				t.Errorf("%s: %d loads, want %d", sc.name, r.fetches, herdKeys)
			}
		case "a node falls silent":
			if r := measure(t, sc, systems[0], 8); r.errors != 0 || r.worst > 120*time.Millisecond {
				t.Errorf("%s: %d errors, worst %v", sc.name, r.errors, r.worst)
			}
		case "all fit once":
			ours, theirs := measure(t, sc, systems[0], 8), measure(t, sc, systems[1], 8)
			if float64(ours.fetches) > 1.01*float64(ours.distinct) || float64(ours.bytes) > 0.6*float64(theirs.bytes) || ours.mean > theirs.mean {
				t.Errorf("%s: %+v, groupcache-go %+v", sc.name, ours, theirs)
			}
		}
	}
}
