package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
)

// below is the target of all URLs that begin with one.
func below(url string) invalidation.Target {
	return invalidation.Target{Kind: invalidation.Prefix, Name: TargetOf(url).Name}
}

// A prefix takes the place of earlier ones that it includes, and of nothing else: a pattern and a prefix
// with one name select different URLs.
func TestWideTombstones(t *testing.T) {
	var ts tombstones
	for i, w := range []wideTombstone{
		{"http://a/x", false, 1}, {"http://a/x", true, 2}, {"http://a/*/y", true, 3}, {"http://a/*/y", true, 4}, {"http://a/", false, 5}, {"http://b/*", true, 6},
	} {
		ts.setWide(w)
		if want := []int{1, 2, 3, 3, 3, 4}[i]; len(ts.wide) != want {
			t.Errorf("after %d: %+v, want %d", i, ts.wide, want)
		}
	}
	for _, c := range []struct {
		url       string
		generated time.Duration
		want      bool
	}{
		{"http://a/q", 5, true}, {"http://a/q", 6, false}, {"http://b/q", 6, true}, {"http://b/q", 7, false}, {"http://c/", 0, false},
	} {
		if got := ts.has(c.url, nil, moment{steady: c.generated}); got != c.want {
			t.Errorf("%s generated at %d: %v", c.url, c.generated, got)
		}
	}
	for i := range 2 * maxWideTombstones {
		ts.setWide(wideTombstone{fmt.Sprint("http://a/", i, "*"), true, 9})
	}
	if len(ts.wide) != maxWideTombstones {
		t.Errorf("%d are remembered", len(ts.wide))
	}
}
