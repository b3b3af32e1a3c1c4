package cache

import (
	"net/http"
	"strings"
	"time"
)

const (
	heuristicShare = 10             // lifetime by heuristics: a tenth of the time since the last modification
	maxHeuristic   = 24 * time.Hour // and no more than this
)

// initialAge is the age of a response on arrival (RFC 9111 section 4.2.3).
func initialAge(age, delay time.Duration, date, received time.Time) time.Duration {
	return max(0, received.Sub(date), age+delay)
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

// lifetime is the freshness lifetime of a response in a shared cache (RFC 9111
// section 4.2.1): s-maxage, max-age, Expires less Date, or a heuristic.
func lifetime(status int, h http.Header, cc *directives, targeted bool, date time.Time) time.Duration {
	switch {
	case cc.sMaxAge != unset:
		return cc.sMaxAge
	case cc.maxAge != unset:
		return cc.maxAge
	case targeted:
		return heuristic(status, h, cc, date)
	}
	if lines, ok := h["Expires"]; ok {
		// An invalid date, "0" above all, means already expired (section 5.3);
		// so do several dates.
		expires, ok := parseDate(lines[0])
		if !ok || len(lines) > 1 {
			return 0
		}
		return min(max(0, expires.Sub(date)), maxDelta)
	}
	return heuristic(status, h, cc, date)
}

// heuristic is the lifetime of a response that states none (section 4.2.2).
func heuristic(status int, h http.Header, cc *directives, date time.Time) time.Duration {
	if !heuristicStatus(status) && !cc.public {
		return 0
	}
	modified := headerTime(h, "Last-Modified")
	if modified.IsZero() || !modified.Before(date) {
		return 0
	}
	return min(date.Sub(modified)/heuristicShare, maxHeuristic).Truncate(time.Second)
}

// heuristicStatus reports whether responses of a status may be kept without an
// explicit lifetime (RFC 9110 section 15.1). Partial responses are not kept.
func heuristicStatus(status int) bool {
	switch status {
	case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501:
		return true
	}
	return false
}

// understoodStatus reports whether the cache implements the status's caching
// behaviour, for must-understand (RFC 9111 section 5.2.2.3).
func understoodStatus(status int) bool {
	return heuristicStatus(status) || status == 302 || status == 303 || status == 307
}

// storable reports whether a shared cache may store the response to a GET
// (RFC 9111 section 3). The request is the client's.
func storable(req http.Header, reqCC *directives, status int, h http.Header) bool {
	cc, targeted := responseDirectives(h)
	switch {
	case status < 200 || status > 599 || status == http.StatusPartialContent || status == http.StatusNotModified:
		return false
	case reqCC.noStore:
		return false
	case cc.mustUnderstand && !understoodStatus(status):
		return false
	case cc.noStore && !cc.mustUnderstand:
		return false
	case cc.private:
		return false
	case req["Authorization"] != nil && !cc.mustRevalidate && !cc.public && cc.sMaxAge == unset:
		return false
	case variesOnEverything(h):
		return false
	}
	if cc.public || cc.maxAge != unset || cc.sMaxAge != unset || !targeted && h["Expires"] != nil {
		return true
	}
	// A response that sets a cookie is kept only if its origin thought of caches
	// (section 7.3).
	return heuristicStatus(status) && h["Set-Cookie"] == nil
}

// useful reports whether storing a response can ever save anything: it is
// fresh for a while, or can be validated.
func (e *entry) useful() bool {
	return e.lifetime > e.initial || e.etag != "" || !e.modified.IsZero()
}

func variesOnEverything(h http.Header) bool {
	for _, line := range h["Vary"] {
		if hasToken(line, "*") {
			return true
		}
	}
	return false
}

// verdict is what may be done with a stored response for a request.
type verdict uint8

const (
	useFresh    verdict = iota // serve it
	useStale                   // serve it although it is stale: the client allows it
	useAndCheck                // serve it, stale, and validate it meanwhile (RFC 5861 section 3)
	mustCheck                  // validate it first
)

// judge decides (RFC 9111 section 4 and 5.2.1). reason is for Cache-Status: why
// a request must go forward.
func (e *entry) judge(req *directives, now moment) (v verdict, reason string) {
	age := e.age(now)
	left := e.lifetime - age
	switch {
	case e.cc.noCache:
		return mustCheck, "stale"
	case req.noCache:
		return mustCheck, "request"
	case req.maxAge == 0:
		return mustCheck, "request"
	case req.maxAge != unset && age > req.maxAge && !(req.stale(-left) && left <= 0):
		return mustCheck, "request"
	case req.minFresh != unset && left < req.minFresh:
		return mustCheck, "request"
	case left > 0:
		return useFresh, ""
	case e.cc.mustRevalidate || e.cc.proxyRevalidate:
		return mustCheck, "stale"
	case e.cc.staleWhileRevalidate != unset && -left < e.cc.staleWhileRevalidate && req.maxAge == unset:
		return useAndCheck, ""
	case e.cc.sMaxAge != unset: // implies proxy-revalidate (section 5.2.2.10)
		return mustCheck, "stale"
	case req.stale(-left):
		return useStale, ""
	}
	return mustCheck, "stale"
}

// stale reports whether the client takes a response that has been stale for d.
func (d *directives) stale(age time.Duration) bool {
	return d.anyStale || d.maxStale != unset && age <= d.maxStale
}

// maxDisconnected is for how long a stale response may stand in for an origin
// that can't be reached, if the response doesn't say (RFC 9111 section 4.2.4).
const maxDisconnected = time.Hour

// onError reports whether the stale response may stand in for a failed fetch:
// an origin that can't be reached or, with status, one that answers an error
// (RFC 5861 section 4, RFC 9111 sections 4.2.4 and 4.3.3).
func (e *entry) onError(req *directives, status int, now moment) bool {
	stale := -e.freshFor(now)
	switch {
	case e.cc.noCache || e.cc.mustRevalidate || e.cc.proxyRevalidate:
		return false
	case req.noCache || req.maxAge != unset && e.age(now) > req.maxAge && !req.stale(stale):
		return false
	case e.cc.staleIfError != unset:
		return stale <= e.cc.staleIfError
	case e.cc.sMaxAge != unset:
		return false
	case req.staleIfError != unset:
		return stale <= req.staleIfError
	}
	return status == 0 && stale <= maxDisconnected
}

// staleStatus reports whether an origin's answer is a failure for which a stale
// response may stand in.
func staleStatus(status int) bool {
	switch status {
	case 500, 502, 503, 504:
		return true
	}
	return false
}

// varyFields returns the names in a response's Vary, canonical and sorted.
func varyFields(h http.Header) []string {
	var fields []string
	for _, line := range h["Vary"] {
		fields = appendFields(fields, line)
	}
	return sortFields(fields)
}

func trimLower(s string) string { return strings.ToLower(strings.Trim(s, " \t")) }
