package proxy

import "time"

// Outcome is the way on which a request was answered.
type Outcome uint8

const (
	LocalHit     Outcome = iota + 1 // from the store, fresh (or stale where that is allowed)
	Revalidated                     // from the store after the origin said that it is still good
	SiblingHit                      // from a sibling
	OriginFetch                     // from the origin
	Collapsed                       // by the answer that another request was already fetching
	Bypass                          // by the origin, of a kind that no cache answers (POST, uncacheable methods, tunnels)
	NotCached                       // 504: the request was only-if-cached and there was no fresh copy
	ClientError                     // refused: the request was no request for this proxy
	GatewayError                    // 502, 504 or 508: origin or way there failed
	ClientGone                      // the client left before its answer began
)

var outcomeNames = [...]string{"none", "local-hit", "revalidated", "sibling-hit", "origin-fetch",
	"collapsed", "bypass", "not-cached", "client-error", "gateway-error", "client-gone"}

func (o Outcome) String() string { return outcomeNames[o] }

// An Event is one finished request.
type Event struct {
	Method, URL   string
	Status        int           // sent to the client; 0 if none was
	Outcome       Outcome       //
	Sibling       bool          // the request came from a sibling (only-if-cached, by way of another cache)
	Peer          string        // the sibling that answered, for SiblingHit
	Asked         int           // siblings asked
	FalseHits     int           // of those, how many had no fresh copy
	SiblingErrors int           // of those, how many failed or were too slow
	Stored        bool          // the answer went into the store
	Stale         bool          // the answer was stale
	Bytes         int64         // body bytes sent to the client
	Duration      time.Duration // from the request's arrival to the answer's end
	Err           error         // why a request failed or its body was cut short; nil = it didn't
}

// Counts is a snapshot of a [Handler]'s counters; all start at 0 and only grow.
// Requests is the sum of the outcomes.
type Counts struct {
	Requests uint64 `json:"requests"` // all, siblings' included

	LocalHits      uint64 `json:"local_hits"`
	Revalidations  uint64 `json:"revalidations"` // stale copies that the origin confirmed for a client
	SiblingHits    uint64 `json:"sibling_hits"`
	OriginAnswers  uint64 `json:"origin_answers"` // clients answered straight from the origin, cacheable or not
	Collapsed      uint64 `json:"collapsed"`
	NotCached      uint64 `json:"not_cached"`
	ClientErrors   uint64 `json:"client_errors"`
	GatewayErrors  uint64 `json:"gateway_errors"`
	ClientsGone    uint64 `json:"clients_gone"`
	BrokenBodies   uint64 `json:"broken_bodies"` // answers cut short after they began
	StaleServed    uint64 `json:"stale_served"`
	Stored         uint64 `json:"stored"`
	Invalidations  uint64 `json:"invalidations"`   // objects removed or marked by unsafe methods
	OriginRequests uint64 `json:"origin_requests"` // requests sent to origins, validations included
	OriginErrors   uint64 `json:"origin_errors"`   // of those, failed without an answer
	Tunnels        uint64 `json:"tunnels"`

	SiblingRequests uint64 `json:"sibling_requests"` // questions to siblings
	FalseHits       uint64 `json:"false_hits"`       // of those, answered 504
	SiblingErrors   uint64 `json:"sibling_errors"`   // of those, failed or too slow

	ServedToSiblings    uint64 `json:"served_to_siblings"`     // siblings' questions answered with the object
	NotServedToSiblings uint64 `json:"not_served_to_siblings"` // siblings' questions answered 504

	BytesToClients    uint64 `json:"bytes_to_clients"` // body bytes
	BytesToSiblings   uint64 `json:"bytes_to_siblings"`
	BytesFromOrigins  uint64 `json:"bytes_from_origins"`
	BytesFromSiblings uint64 `json:"bytes_from_siblings"`
}
