package engine

import (
	"io"
	"testing"
	"time"
)

// No request begins to follow a body that has broken off, even while its fetch is still ending, that stands still, or
// that the origin has replaced.
func TestFollowable(t *testing.T) {
	for _, c := range []struct {
		idle       time.Duration
		superseded bool
		err        error
		want       bool
	}{
		{0, false, nil, true},
		{time.Minute, false, nil, false},
		{0, true, nil, false},
		{0, false, io.EOF, true},
		{0, false, io.ErrUnexpectedEOF, false},
	} {
		b := body{from: new(answer), beside: beside{superseded: c.superseded}, err: c.err}
		if c.idle > 0 {
			b.may.since = time.Now().Add(-c.idle)
		}
		if got := b.followable(); got != c.want {
			t.Errorf("idle for %v, superseded %v, ended with %v: %v", c.idle, c.superseded, c.err, got)
		}
	}
}
