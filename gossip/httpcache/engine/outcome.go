package engine

import (
	"sync/atomic"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Outcome says how a request was answered.
type Outcome uint8

const (
	LocalHit     Outcome = iota + 1 // from the store, fresh or, where that is allowed, stale
	Revalidated                     // from the store, after the origin or a sibling had confirmed it
	SiblingHit                      // by a sibling
	OriginFetch                     // by the origin, though a cache may answer such requests
	Collapsed                       // by the fetch of another request
	Bypass                          // by the origin, since such requests are not answered from a cache (POST, tunnels), or a PURGE
	NotCached                       // 504: the request was only-if-cached and there was no fresh copy
	ClientError                     // refused: the request was not valid for this proxy
	GatewayError                    // 502, 504 or 508: the origin or the way to it failed
	ClientGone                      // the client left before its answer began: panic with http.ErrAbortHandler, or net/http answers 200
	Outcomes                        // their number, the zero value included
)

var outcomeNames = [Outcomes]string{"none", "local-hit", "revalidated", "sibling-hit", "origin-fetch",
	"collapsed", "bypass", "not-cached", "client-error", "gateway-error", "client-gone"}

func (o Outcome) String() string {
	if o >= Outcomes {
		return "unknown"
	}
	return outcomeNames[o]
}

// A Result is the result of one request.
type Result struct {
	Status        int            // sent to the client; 0 if none was
	Outcome       Outcome        //
	Peer          string         // the sibling that answered, for SiblingHit
	Asked         int            // siblings asked
	FalseHits     int            // of those, how many had no fresh copy
	SiblingErrors int            // of those, how many failed or were too slow
	Stale         bool           // the answer was stale
	Bytes         int64          // body bytes sent
	Broken        bool           // the answer was cut short: the connection must be closed
	Said          rfc9111.Status // what Cache-Status says of an answer that was no hit, without the cache's name
	Err           error          // why a request failed or was cut short; nil = it didn't
}

// Counters count what a [Cache] does beyond single requests.
type Counters struct {
	OriginRequests   atomic.Uint64                    // requests sent to origins, validations included
	OriginErrors     atomic.Uint64                    // of those, failed without an answer
	BytesFromOrigins atomic.Uint64                    // body bytes
	Invalidations    atomic.Uint64                    // responses removed by unsafe methods
	Stored           atomic.Uint64                    // responses put into the store
	NotStored        [rfc9111.Obstacles]atomic.Uint64 // whole answers of origins to GET that were not stored, by reason; 0 is not counted
	Background       atomic.Uint64                    // fetches that no client waited for
	BodiesResumed    atomic.Uint64                    // answers whose source broke off, and that another fetch finished
	BodiesTakenOver  atomic.Uint64                    // bodies whose source made too little progress, and that another fetch overtook
	BodiesCut        atomic.Uint64                    // answers that no source could finish
	SiblingsCompared atomic.Uint64                    // siblings' answers compared with the origin's
	SiblingsRefuted  atomic.Uint64                    // of those, different ones, which were removed
	SiblingsAccused  atomic.Uint64                    // quarantines of siblings for a corrupt or forged body
}
