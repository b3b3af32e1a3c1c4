package rfc9111

import (
	"net/http"
	"time"
)

// A Response is what the rules know of a response besides its body. It is immutable
// and may be shared, if nobody changes its header.
type Response struct {
	Status int
	// Header has no fields of a connection: see [RemoveHopByHop].
	Header  http.Header
	Control Directives // those that apply in a shared cache, a targeted field's before all (RFC 9213)

	InitialAge time.Duration // when it arrived (RFC 9111 section 4.2.3)
	Lifetime   time.Duration // for which it is fresh (section 4.2.1); 0 = it is always stale
	Explicit   bool          // the response states its lifetime

	Date         time.Time // the Date field; without a valid one, when the response arrived
	LastModified time.Time // zero if absent or invalid
	ETag         string    // "" = none
}

// NewResponse describes a response that arrived at a time, so long after it was
// asked for.
func NewResponse(status int, h http.Header, delay time.Duration, arrived time.Time) *Response {
	r := describe(status, h, delay, arrived)
	return &r // in the caller's memory where that is enough
}

func describe(status int, h http.Header, delay time.Duration, arrived time.Time) Response {
	date := dateOf(h, arrived)
	return restore(status, h, initialAge(h, date, delay, arrived), date)
}

// Restore describes a response whose age on arrival is known, since NewResponse
// worked it out before the response was stored.
func Restore(status int, h http.Header, initialAge time.Duration, arrived time.Time) *Response {
	r := restore(status, h, initialAge, dateOf(h, arrived))
	return &r
}

func restore(status int, h http.Header, initialAge time.Duration, date time.Time) Response {
	r := Response{Status: status, Header: h, InitialAge: initialAge, Date: date,
		LastModified: headerDate(h, "Last-Modified"), ETag: h.Get("Etag")}
	var targeted bool
	r.Control, targeted = responseDirectives(h)
	r.Lifetime, r.Explicit = r.lifetime(targeted)
	return r
}

func dateOf(h http.Header, arrived time.Time) time.Time {
	if date := headerDate(h, "Date"); !date.IsZero() {
		return date
	}
	return arrived
}

// initialAge is the age of a response of a date on arrival (RFC 9111 section 4.2.3).
func initialAge(h http.Header, date time.Time, delay time.Duration, arrived time.Time) time.Duration {
	return max(0, arrived.Sub(date), headerAge(h)+delay)
}

// headerAge reads the Age field: the first value counts if there are several,
// and an invalid one counts as 0 (RFC 9111 section 5.1).
func headerAge(h http.Header) time.Duration {
	lines := h["Age"]
	if len(lines) == 0 {
		return 0
	}
	first, _ := cutList(lines[0])
	age, _ := parseDelta(first)
	return age
}

// AgeUnknown is the age of a response that arrived in the future: the clock was put
// back since, and nobody knows by how much. No lifetime is as long.
const AgeUnknown = 2 * MaxDelta

// Age returns the current age of a response that was in the cache for so long (RFC
// 9111 section 4.2.3); resident below 0 gives AgeUnknown.
func (r *Response) Age(resident time.Duration) time.Duration {
	if resident < 0 {
		return AgeUnknown
	}
	return min(r.InitialAge+resident, AgeUnknown)
}
