package cache

import (
	"io"
	"testing"
)

// No request begins to follow a body that has broken off, even while its fetch is still ending.
func TestFollowable(t *testing.T) {
	for _, c := range []struct {
		resuming, ended bool
		err             error
		want            bool
	}{
		{false, false, nil, true},
		{true, false, nil, false},
		{false, true, io.EOF, true},
		{false, true, io.ErrUnexpectedEOF, false},
	} {
		b := body{resuming: c.resuming, ended: c.ended, err: c.err}
		if got := b.followable(); got != c.want {
			t.Errorf("resuming %v, ended %v with %v: %v", c.resuming, c.ended, c.err, got)
		}
	}
}
