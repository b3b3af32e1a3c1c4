package feed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/feed"
)

// TestSettings: what cannot work is refused by an error or a panic that says what to do, or works.
func TestSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func()
		want string
	}{
		"a publisher of nothing":    {func() { feed.NewPublisher(nil, 0) }, "use NewSet or PlanSet"},
		"a publisher of a zero set": {func() { feed.NewPublisher(new(digest.Set), 0) }, "use NewSet or PlanSet"},
		"a nil publisher":           {func() { (*feed.Publisher)(nil).Next() }, "use NewPublisher"},
		"a zero publisher":          {func() { new(feed.Publisher).Since(digest.Version{}) }, "use NewPublisher"},
		"a nil replica":             {func() { (*feed.Replica)(nil).Needs() }, "make one with NewReplica"},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tc.want) {
					t.Errorf("%s: panics with %q, want %q", name, got, tc.want)
				}
			}()
			tc.do()
		}()
	}
	held, err := digest.PlanSet(1000, 0.001, digest.HTTP, seed, 0) // epoch 0 is 1
	if err != nil {
		t.Fatal(err)
	}
	p, again := feed.NewPublisher(held, -1), feed.NewPublisher(held, 0) // without a log, and twice
	for name, tc := range map[string]struct {
		lim  digest.Limits
		want error
	}{
		"default limits":    {digest.Limits{}, digest.ErrSeed}, // of the profile
		"another seed":      {digest.Limits{Seed: seed + 1, Profile: digest.HTTP}, digest.ErrSeed},
		"no seed":           {digest.Limits{Profile: digest.HTTP}, nil},
		"any profile":       {digest.Limits{Seed: seed, Profile: digest.AnyProfile}, nil},
		"a limit of a byte": {digest.Limits{Bytes: 1, Profile: digest.HTTP}, digest.ErrTooLarge},
	} {
		r := feed.NewReplica(tc.lim)
		if _, _, err := r.Handle(nil); !errors.Is(err, digest.ErrCorrupt) {
			t.Errorf("%s: Handle(nil) = %v", name, err)
		}
		for i := range 4 {
			held.Add(digest.KeyOfUint64(seed, uint64(i)))
			from := []*feed.Publisher{p, again}[i%2]
			since, _ := r.Needs()
			if _, _, err := r.Handle(from.Next()); !errors.Is(err, tc.want) && err != nil {
				t.Errorf("%s: Handle of Next = %v, want %v", name, err, tc.want)
			}
			if _, _, err := r.Handle(from.Since(since)); !errors.Is(err, tc.want) {
				t.Errorf("%s: Handle of Since = %v, want %v", name, err, tc.want)
			}
			if tc.want == nil && r.Filter().Version() != held.Filter().Current().Version() {
				t.Errorf("%s: the replica has %v, published is %v", name, r.Filter().Version(), held.Filter().Current().Version())
			}
		}
	}
}
