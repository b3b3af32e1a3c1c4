package sibling

import (
	"net/http"
	"reflect"
	"testing"
)

func TestTranslate(t *testing.T) {
	for name, c := range map[string]struct {
		in, want http.Header
		hit      bool
	}{
		"hit": {
			http.Header{"X-Cache": {"HIT from m"}, "X-Cache-Lookup": {"HIT from m:3128"}, "Age": {"7"}},
			http.Header{"Cache-Status": {"m; hit"}, "Age": {"7"}}, true,
		},
		"hit of what came through a CDN": {
			http.Header{"X-Cache": {"MISS from cdn", "HIT from m"}, "Cache-Status": {"cdn; fwd=miss"}},
			http.Header{"X-Cache": {"MISS from cdn"}, "Cache-Status": {"cdn; fwd=miss", "m; hit"}}, true,
		},
		"miss of what a CDN had": {
			http.Header{"X-Cache": {"MISS from m"}, "Cache-Status": {"cdn; hit"}},
			http.Header{"Cache-Status": {"cdn; hit", "m; fwd=miss"}}, false,
		},
		"release 6":      {http.Header{"Cache-Status": {"m;hit;detail=match"}}, http.Header{"Cache-Status": {"m;hit;detail=match"}}, true},
		"nothing":        {http.Header{}, http.Header{}, false},
		"something":      {http.Header{"X-Cache": {"HIT"}}, http.Header{"X-Cache": {"HIT"}}, false},
		"no name at all": {http.Header{"X-Cache": {"HIT from \x01"}}, http.Header{}, false},
	} {
		translate(c.in)
		if !reflect.DeepEqual(c.in, c.want) || hitOf(c.in) != c.hit {
			t.Errorf("%s: %v, hit %v; want %v, hit %v", name, c.in, hitOf(c.in), c.want, c.hit)
		}
	}
}

func hitOf(h http.Header) bool {
	hit, _ := isHit(h)
	return hit
}
