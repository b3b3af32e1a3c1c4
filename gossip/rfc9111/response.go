package rfc9111

import (
	"net/http"
	"time"
)

// A Response describes a response without its body. It is immutable and may be shared, if
// nobody changes its header.
type Response struct {
	Status  int
	Header  http.Header // without the fields of a connection: see [RemoveHopByHop]
	Control Directives  // those that apply in a shared cache; a targeted field has precedence (RFC 9213)

	InitialAge time.Duration // on arrival (RFC 9111 section 4.2.3)
	Lifetime   time.Duration // for which it is fresh (section 4.2.1); 0 = it is always stale
	Explicit   bool          // the response states its lifetime

	Date         time.Time // the Date field or, without a valid one, the time of arrival
	LastModified time.Time // zero if absent or invalid
	ETag         string    // "" = none
}

// NewResponse describes a response that arrived at a time. delay is the time since its request
// was sent.
func NewResponse(status int, h http.Header, delay time.Duration, arrived time.Time) *Response {
	r := describe(status, h, delay, arrived)
	return &r // inlined: often it need not be on the heap
}

// Restore describes a stored response, whose age on arrival NewResponse has computed before.
func Restore(status int, h http.Header, initialAge time.Duration, arrived time.Time) *Response {
	r := describe(status, h, 0, arrived)
	r.InitialAge = initialAge
	return &r
}

func describe(status int, h http.Header, delay time.Duration, arrived time.Time) Response {
	date := dateOf(h, arrived)
	r := Response{Status: status, Header: h, InitialAge: initialAge(h, date, delay, arrived), Date: date,
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

// initialAge returns the age on arrival of a response with that date (RFC 9111 section 4.2.3).
func initialAge(h http.Header, date time.Time, delay time.Duration, arrived time.Time) time.Duration {
	return max(0, arrived.Sub(date), headerAge(h)+delay)
}

// headerAge reads the Age field. Of several values the first counts; an invalid one counts
// as 0 (RFC 9111 section 5.1).
func headerAge(h http.Header) time.Duration {
	lines := h["Age"]
	if len(lines) == 0 {
		return 0
	}
	first, _ := cutList(lines[0])
	age, _ := parseDelta(first)
	return age
}

// ageUnknown is the age of a response that arrived in the future: the clock was set back by an
// unknown time. It is longer than any lifetime.
const ageUnknown = 2 * MaxDelta

// Age returns the current age of a response that has been in the cache for so long (RFC 9111
// section 4.2.3). If resident is negative, because the clock was set back, the result is longer
// than any lifetime.
func (r *Response) Age(resident time.Duration) time.Duration {
	if resident < 0 {
		return ageUnknown
	}
	return min(r.InitialAge+resident, ageUnknown)
}
