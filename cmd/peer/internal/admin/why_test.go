package admin

import (
	"fmt"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// Slices of one version that follow one another are a row.
func TestSlicesInRows(t *testing.T) {
	var held []engine.Stored
	for _, n := range []int64{0, 1, 2, 5, 6} {
		tag := `"1"`
		if n == 6 {
			tag = `"2"`
		}
		held = append(held, engine.Stored{Identity: fmt.Sprintf("GET http://h/a\nslice:%d-%d", 100*n, 100*n+99), Status: 200, ETag: tag, Bytes: 100, From: 100 * n, Whole: 700})
	}
	var got []string
	for _, s := range inRows(held) {
		got = append(got, response(s))
	}
	if want := []string{`200 "1", bytes 0-299 of 700`, `200 "1", bytes 500-599 of 700`, `200 "2", bytes 600-699 of 700`}; !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
}
