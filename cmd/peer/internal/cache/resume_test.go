package cache

import (
	"io"
	"testing"
)

// No request begins to follow a body that has broken off, even while its fetch is still ending, or
// that the origin has replaced.
func TestFollowable(t *testing.T) {
	for _, c := range []struct {
		resuming, superseded bool
		err                  error
		want                 bool
	}{
		{false, false, nil, true},
		{true, false, nil, false},
		{false, true, nil, false},
		{false, false, io.EOF, true},
		{false, false, io.ErrUnexpectedEOF, false},
	} {
		b := body{resuming: c.resuming, superseded: c.superseded, err: c.err}
		if got := b.followable(); got != c.want {
			t.Errorf("resuming %v, superseded %v, ended with %v: %v", c.resuming, c.superseded, c.err, got)
		}
	}
}
