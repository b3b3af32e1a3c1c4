package main

import (
	"flag"
	"testing"
)

var long = flag.Bool("long", false, "also run what takes minutes")

// TestExactly runs ten seeds twice, and compares the logs of all events and of all peers.
func TestExactly(t *testing.T) {
	if !*long {
		t.Skip("takes minutes: -long runs it")
	}
	if err := play(1, 10, 1, "", false, 0); err != nil {
		t.Error(err)
	}
}
