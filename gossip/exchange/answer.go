package exchange

import (
	"errors"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// Result is the result of a [Fetch]. If there was no answer, only Err is set.
type Result struct {
	Kind       FrameType
	Head       Head           // same, delta, snapshot
	Filter     *digest.Filter // delta, snapshot: verified to match Head
	Delta      *digest.Delta  // delta
	RetryAfter time.Duration  // busy
	Bytes      int            // length of the answer
	Err        error          // wraps a sentinel of this package or of digest if the answer was bad
}

// DecodeAnswer reads the frame of type t that answers f, and checks everything that can be checked
// without the engine's state: the head is of the requested origin; a delta fits its base; the version and
// set hash of the result are those of the head. If seeds are given, the digest must be under one of them,
// and lim.Seed is ignored. DecodeAnswer may run concurrently with the engine. payload is not retained.
func DecodeAnswer(f Fetch, t FrameType, payload []byte, lim digest.Limits, seeds ...uint64) Result {
	r, in := Result{Kind: t, Bytes: len(payload)}, newReader(t.String(), payload)
	switch t {
	case FrameBusy:
		r.RetryAfter, r.Err = decodeBusy(payload)
	case FrameUnknown:
	case FrameSame:
		r.Head = in.head()
		r.Err = in.End()
	case FrameDelta, FrameSnapshot:
		r.Head = in.head()
		body := in.Rest()
		if r.Err = in.Err; r.Err == nil {
			if len(seeds) == 0 {
				seeds = []uint64{lim.Seed}
			}
			for _, lim.Seed = range seeds {
				if r.Filter, r.Delta, r.Err = decodeBody(f, t, body, lim); !errors.Is(r.Err, digest.ErrSeed) {
					break
				}
			}
		}
		if r.Err == nil && headOf(r.Head.Origin, r.Head.Version.Incarnation, r.Filter) != r.Head {
			r.Err = fmt.Errorf("exchange: %v: the body does not match its head: %w", t, digest.ErrCorrupt)
		}
	default:
		r.Err = &wire.FormatError{Message: "answer", Field: "type", Err: ErrMalformed}
	}
	if r.Err == nil && r.Head != (Head{}) && r.Head.Origin != f.Get.Origin {
		r.Err = &wire.FormatError{Message: t.String(), Field: "origin", Err: ErrMalformed}
	}
	return r
}

func decodeBody(f Fetch, t FrameType, body []byte, lim digest.Limits) (*digest.Filter, *digest.Delta, error) {
	if t == FrameSnapshot {
		filter, err := digest.DecodeFilter(body, lim)
		return filter, nil, err
	}
	if f.Base == nil {
		return nil, nil, fmt.Errorf("exchange: a delta, but the get had no base: %w", digest.ErrBase)
	}
	d, err := digest.DecodeDelta(body, f.Base, lim)
	if err != nil {
		return nil, nil, err
	}
	filter, err := d.Apply(f.Base)
	return filter, d, err
}
