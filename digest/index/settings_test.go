package index

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// TestSettings: what cannot work is refused by an error or a panic that says what to do, or works.
func TestSettings(t *testing.T) {
	f, err := digest.FilterOf(digest.Geometry{Bits: 1 << 20, Hashes: 1}, digest.Version{Epoch: 1}, func(yield func(digest.Key) bool) {
		for i := range 1000 {
			if !yield(digest.KeyOfUint64(0, uint64(i))) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	says := func(do func()) (text string) {
		defer func() { text = fmt.Sprint(recover()) }()
		do()
		return ""
	}
	for _, x := range []*Index{nil, new(Index)} {
		v := reflect.ValueOf(x)
		for i := range v.NumMethod() {
			method := v.Method(i)
			var args []reflect.Value
			for a := range method.Type().NumIn() {
				switch of := method.Type().In(a); of {
				case reflect.TypeFor[*digest.Filter]():
					args = append(args, reflect.ValueOf(f))
				case reflect.TypeFor[[]Change]():
					args = append(args, reflect.ValueOf([]Change{{Peer: "a", Next: f}}))
				case reflect.TypeFor[[]digest.Key]():
					args = append(args, reflect.ValueOf([]digest.Key{1}))
				default:
					args = append(args, reflect.Zero(of))
				}
			}
			call := method.Call
			if method.Type().IsVariadic() {
				call = method.CallSlice
			}
			if got := says(func() { call(args) }); !strings.Contains(got, "use New") {
				t.Errorf("%s of an index that is nil or zero: panics with %q", v.Type().Method(i).Name, got)
			}
		}
	}
	x := New()
	for name, tc := range map[string]struct {
		do   func()
		want string
	}{
		"Set of nil":         {func() { x.Set("a", nil) }, "to forget a peer, use Delete"},
		"the zero Change":    {func() { x.Apply(Change{}) }, "to forget a peer, use Delete"},
		"Set of a zero one":  {func() { x.Set("a", new(digest.Filter)) }, "use FilterOf"},
		"Set without a peer": {func() { x.Set("", f) }, "the name of a peer"},
	} {
		if got := says(tc.do); !strings.Contains(got, tc.want) {
			t.Errorf("%s: panics with %q, want %q", name, got, tc.want)
		}
	}
	x.SetMemoryLimit(-1) // no bound
	x.Delete("nobody")
	if err := errors.Join(x.Apply(), x.Set("a", f)); err != nil || len(x.Lookup(nil, digest.KeyOfUint64(0, 7))) != 1 {
		t.Errorf("Set = %v, %v", err, x.Lookup(nil, digest.KeyOfUint64(0, 7)))
	}
	if got := x.Prefixes(nil, nil); len(got) != 0 {
		t.Errorf("Prefixes of no keys = %v", got)
	}
	x.SetMemoryLimit(1)
	if err := x.Set("b", f); !errors.Is(err, digest.ErrTooLarge) {
		t.Errorf("Set beyond the limit = %v", err)
	}
}
