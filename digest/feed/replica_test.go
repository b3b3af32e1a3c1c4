package feed_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/feed"
)

// life is a life of a cache, which adds one key for each message.
func life(t testing.TB, epoch, first uint64, messages int) (out [][]byte, p *feed.Publisher) {
	t.Helper()
	held, err := digest.NewSet(digest.Geometry{Bits: 1 << 22, Hashes: 1}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	p = feed.NewPublisher(held, 1<<20)
	for i := range messages {
		held.Add(digest.Key((first + uint64(i)) << 40 * 1_000_003))
		out = append(out, p.Next())
	}
	return out, p
}

// TestHandle: how a replica that holds the third version of an epoch handles each kind of
// message.
func TestHandle(t *testing.T) {
	ours, publisher := life(t, 5, 1, 6)
	twin, twinPublisher := life(t, 5, 1000, 3) // the same numbers, other contents
	later, laterPublisher := life(t, 6, 1, 1)
	former, _ := life(t, 4, 1, 3)
	snapshot := publisher.Since(digest.Version{})
	_, atThird := life(t, 5, 1, 3)
	third := func() *feed.Replica {
		r := feed.NewReplica(digest.Limits{})
		if _, changed, err := r.Handle(atThird.Since(digest.Version{})); !changed || err != nil {
			t.Fatal(changed, err)
		}
		return r
	}
	const (
		nothing = iota
		catchUp
		everything
	)
	same := func(b []byte, n int) (all [][]byte) {
		for range n {
			all = append(all, b)
		}
		return all
	}
	for name, c := range map[string]struct {
		messages [][]byte
		changed  int
		needs    int
		err      error
	}{
		"the next":                           {[][]byte{ours[3]}, 1, nothing, nil},
		"all that follow":                    {ours[3:], 3, nothing, nil},
		"a gap":                              {[][]byte{ours[4]}, 0, catchUp, nil},
		"a gap that closes":                  {[][]byte{ours[4], ours[3], ours[4]}, 2, nothing, nil},
		"in the wrong order":                 {[][]byte{ours[5], ours[4], ours[3]}, 1, nothing, nil},
		"a snapshot":                         {[][]byte{snapshot}, 1, nothing, nil},
		"a snapshot after a gap":             {[][]byte{ours[5], snapshot}, 1, nothing, nil},
		"twice":                              {[][]byte{ours[3], ours[3]}, 1, nothing, nil},
		"a repetition after a gap":           {[][]byte{ours[5], ours[2]}, 0, catchUp, nil},
		"older":                              {ours[:2], 0, nothing, nil},
		"of a former life":                   {former, 0, nothing, nil},
		"of a former life, long":             {same(former[2], 8), 0, everything, nil},
		"a doubt that the publisher dispels": {append(same(former[2], 9), atThird.Next()), 0, nothing, nil},
		"a doubt that a snapshot dispels":    {append(same(former[2], 9), atThird.Since(digest.Version{})), 0, nothing, nil},
		"interrupted by what is held":        {append(append(same(former[2], 7), ours[2]), same(former[2], 7)...), 0, nothing, nil},
		"of a later life":                    {later, 0, catchUp, nil},
		"a later life's snapshot":            {[][]byte{later[0], laterPublisher.Since(digest.Version{})}, 1, nothing, nil},
		"other contents":                     {[][]byte{twin[2]}, 0, everything, nil},
		"other contents, all":                {[][]byte{twin[2], twinPublisher.Since(digest.Version{})}, 1, nothing, nil},
		"cut":                                {[][]byte{ours[3][:20]}, 0, nothing, digest.ErrCorrupt},
		"nothing":                            {[][]byte{nil}, 0, nothing, digest.ErrCorrupt},
		"a later format":                     {[][]byte{[]byte("SCD\x02")}, 0, nothing, digest.ErrVersion},
	} {
		t.Run(name, func(t *testing.T) {
			r, changes := third(), 0
			var err error
			for _, m := range c.messages {
				_, changed, e := r.Handle(m)
				if changed {
					changes++
				}
				err = errors.Join(err, e)
			}
			since, any := r.Needs()
			needs := nothing
			if any {
				needs = catchUp
				if since == (digest.Version{}) {
					needs = everything
				} else if since != r.Filter().Version() {
					t.Errorf("Needs() = %v, holding %v", since, r.Filter().Version())
				}
			}
			if changes != c.changed || needs != c.needs || !errors.Is(err, c.err) {
				t.Errorf("%d changes, needs %d, error %v, want %d, %d, %v", changes, needs, err, c.changed, c.needs, c.err)
			}
		})
	}
}

// TestDamaged: whatever byte of the next delta a publisher of the same numbers would have otherwise, and with a valid
// checksum, the replica keeps what it holds, and does not wait for ever: it takes the message, or asks for a snapshot
// or a delta, or the message says that it is damaged and the true one is taken next.
func TestDamaged(t *testing.T) {
	ours, publisher := life(t, 5, 1, 6)
	wrong := 0
	for i := range len(ours[3]) - 4 {
		r := feed.NewReplica(digest.Limits{})
		if _, _, err := r.Handle(replicaAtThird(t)); err != nil {
			t.Fatal(err)
		}
		held := r.Filter()
		b := slices.Clone(ours[3])
		b[i] ^= 1
		b = binary.LittleEndian.AppendUint32(b[:len(b)-4], uint32(xxhash.Sum64(b[:len(b)-4])))
		_, changed, err := r.Handle(b)
		if err != nil && (changed || r.Filter() != held) {
			t.Fatalf("byte %d: %v, and yet the filter has changed", i, err)
		}
		if _, any := r.Needs(); errors.Is(err, digest.ErrCorrupt) && any {
			wrong++
			if since, _ := r.Needs(); since != (digest.Version{}) {
				t.Errorf("byte %d: needs what follows %v, of which nobody knows whether it is the publisher's", i, since)
			}
			if _, changed, err := r.Handle(publisher.Since(digest.Version{})); !changed || err != nil {
				t.Errorf("byte %d: after a snapshot, %v, %v", i, changed, err)
			}
		}
		if _, any := r.Needs(); any && errors.Is(err, digest.ErrCorrupt) {
			t.Errorf("byte %d: after a snapshot it needs more", i)
		}
	}
	if wrong < 8 { // the target's state alone has as many bytes
		t.Errorf("of %d bytes only %d cause a doubt whether the held digest is the publisher's", len(ours[3]), wrong)
	}
}

// replicaAtThird is a snapshot of the third version.
func replicaAtThird(t *testing.T) []byte {
	_, p := life(t, 5, 1, 3)
	return p.Since(digest.Version{})
}

// TestNextSaysNothingNew: Next returns a short message even if nothing has changed.
func TestNextSaysNothingNew(t *testing.T) {
	_, p := life(t, 1, 1, 50)
	if b := p.Next(); len(b) > 64 {
		t.Errorf("%d bytes say that nothing is new", len(b))
	}
}

// FuzzHandle: whatever the bytes, a replica holds a complete filter, or the one that it had.
func FuzzHandle(f *testing.F) {
	messages, p := life(f, 5, 1, 4)
	for _, m := range append(messages, p.Since(digest.Version{})) {
		f.Add(m, m[:len(m)/2])
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		r := feed.NewReplica(digest.Limits{Bytes: 1 << 16, Memory: 1 << 22})
		for _, m := range [][]byte{messages[0], p.Since(digest.Version{}), a, b, a} {
			before := r.Filter()
			_, changed, err := r.Handle(m)
			if after := r.Filter(); changed != (after != before) || err != nil && changed || after == nil && before != nil {
				t.Fatalf("Handle(%x) = %v, %v", m, changed, err)
			}
		}
	})
}

// TestZeroPublisher: what would be a nil pointer says what to do.
func TestZeroPublisher(t *testing.T) {
	for name, do := range map[string]func(){
		"NewPublisher": func() { feed.NewPublisher(nil, 0) },
		"Filter":       func() { (*feed.Replica)(nil).Filter() },
		"Needs":        func() { (*feed.Replica)(nil).Needs() },
		"Handle":       func() { (*feed.Replica)(nil).Handle(nil) },
		"Next":         func() { new(feed.Publisher).Next() },
		"Since":        func() { (*feed.Publisher)(nil).Since(digest.Version{}) },
	} {
		func() {
			defer func() {
				if said, ok := recover().(string); !ok {
					t.Errorf("%s: panic of %T: it does not say what to do", name, said)
				}
			}()
			do()
			t.Errorf("%s did not panic", name)
		}()
	}
}
