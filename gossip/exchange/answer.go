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
	Signature  []byte         // delta, snapshot, and same for a former incarnation: of the origin; empty if it does not sign
	Filter     *digest.Filter // delta, snapshot: verified to match Head
	Delta      *digest.Delta  // delta
	RetryAfter time.Duration  // busy
	Resumed    int            // bytes of a snapshot that had arrived before an earlier stream broke
	partial    *partialBody   // with Err: the part of a snapshot that arrived before the stream broke; nil if none
	Bytes      int            // length of the answer
	Err        error          // wraps a sentinel of this package or of digest if the answer was bad
}

// DecodeAnswer reads the frame of type t that answers f, and checks everything that can be checked
// without the engine's state: the head is of the requested origin, and signed if that signs; a
// delta fits its base; the version and set hash of the result are those of the head. If seeds are
// given, the digest must be under one of them, and lim.Seed is ignored. DecodeAnswer may run
// concurrently with the engine. payload is not retained.
func DecodeAnswer(f Fetch, t FrameType, payload []byte, lim digest.Limits, seeds ...uint64) Result {
	r := Result{Kind: t, Bytes: len(payload)}
	switch t {
	case FrameBusy:
		r.RetryAfter, r.Err = decodeBusy(payload)
	case FrameUnknown:
	case FrameSame:
		in := newReader("same", payload)
		r.Head = in.head()
		r.Signature = in.Signature()
		if r.Err = in.End(); r.Err == nil && len(r.Signature) > 0 {
			r.Err = verify(f.Key, r.Head, r.Signature)
		}
	case FrameDelta, FrameSnapshot, FrameRest:
		in := newReader(t.String(), payload)
		var body []byte
		r, body = in.body(f, t)
		r.Bytes = len(payload)
		if r.Err = in.Err; r.Err == nil {
			r.Err = verify(f.Key, r.Head, r.Signature)
		}
		if r.Err == nil {
			if len(seeds) == 0 {
				seeds = []uint64{lim.Seed}
			}
			for _, lim.Seed = range seeds {
				if r.Filter, r.Delta, r.Err = decodeBody(f, r.Kind, body, lim); !errors.Is(r.Err, digest.ErrSeed) {
					break
				}
			}
		}
		if r.Err == nil && headOf(r.Head.Origin, r.Head.Version.Incarnation, r.Filter) != r.Head {
			r.Err = fmt.Errorf("exchange: %v: the body does not match its head: %w", r.Kind, digest.ErrCorrupt)
		}
	default:
		r.Err = &wire.FormatError{Message: "answer", Field: "type", Err: ErrMalformed}
	}
	if r.Err == nil && r.Head != (Head{}) && r.Head.Origin != f.Get.Origin {
		r.Err = &wire.FormatError{Message: t.String(), Field: "origin", Err: ErrMalformed}
	}
	return r
}

// body reads a delta or a snapshot: its head, its signature and the body. A rest is appended to the
// part of f, which makes it a snapshot.
func (r *reader) body(f Fetch, t FrameType) (result Result, body []byte) {
	result.Kind, result.Head = t, r.head()
	if t == FrameRest {
		result.Kind = FrameSnapshot
		result.Signature, body = r.joined(f, result.Head)
		if body != nil {
			result.Resumed = len(f.partial.Body)
		}
		return result, body
	}
	result.Signature = r.Signature()
	return result, r.Rest()
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
