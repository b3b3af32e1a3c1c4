package engine

import (
	"io"
	"testing"
)

// No request begins to follow a body that has broken off, even while its fetch is still ending, or
// that the origin has replaced.
func TestFollowable(t *testing.T) {
	for _, c := range []struct {
		state      bodyState
		superseded bool
		err        error
		want       bool
	}{
		{bodyFlows, false, nil, true},
		{bodySought, false, nil, false},
		{bodyFlows, true, nil, false},
		{bodyWhole, false, io.EOF, true},
		{bodyCut, false, io.ErrUnexpectedEOF, false},
	} {
		b := body{state: c.state, superseded: c.superseded, err: c.err}
		if got := b.followable(); got != c.want {
			t.Errorf("state %v, superseded %v, ended with %v: %v", c.state, c.superseded, c.err, got)
		}
	}
}
