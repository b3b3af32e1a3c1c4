package rfc9111

import "time"

const (
	heuristicShare = 10             // lifetime by heuristics: a tenth of the time since the last modification
	maxHeuristic   = 24 * time.Hour // and no more than this
)

// lifetime is the freshness lifetime in a shared cache (RFC 9111 section 4.2.1):
// s-maxage, max-age, Expires less Date, or a heuristic.
func (r *Response) lifetime(targeted bool) (life time.Duration, explicit bool) {
	switch {
	case r.Control.SMaxAge != Unset:
		return r.Control.SMaxAge, true
	case r.Control.MaxAge != Unset:
		return r.Control.MaxAge, true
	}
	if lines, ok := r.Header["Expires"]; ok && !targeted {
		// An invalid date, "0" above all, means already expired (section 5.3);
		// so do several dates.
		expires, ok := ParseDate(lines[0])
		if !ok || len(lines) > 1 {
			return 0, true
		}
		return min(max(0, expires.Sub(r.Date)), MaxDelta), true
	}
	return r.heuristic(), false
}

// heuristic is the lifetime of a response that states none (section 4.2.2).
func (r *Response) heuristic() time.Duration {
	if !heuristicStatus(r.Status) && !r.Control.Public || r.LastModified.IsZero() || !r.LastModified.Before(r.Date) {
		return 0
	}
	return min(r.Date.Sub(r.LastModified)/heuristicShare, maxHeuristic).Truncate(time.Second)
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

// understoodStatus reports whether the status's caching behaviour is implemented,
// for must-understand (RFC 9111 section 5.2.2.3).
func understoodStatus(status int) bool {
	return heuristicStatus(status) || status == 302 || status == 303 || status == 307
}

// Storable reports whether a shared cache may store the response to a GET (RFC 9111
// section 3), given the directives of the request, nil = none, and whether that had
// an Authorization field (section 3.5).
func (r *Response) Storable(req *Directives, authorized bool) bool {
	cc := &r.Control
	switch {
	case r.Status < 200 || r.Status > 599 || r.Status == 206 || r.Status == 304:
		return false
	case req != nil && req.NoStore:
		return false
	case cc.MustUnderstand && !understoodStatus(r.Status):
		return false
	case cc.NoStore && !cc.MustUnderstand:
		return false
	case cc.Private:
		return false
	case authorized && !cc.MustRevalidate && !cc.Public && cc.SMaxAge == Unset:
		return false
	case hasToken(r.Header["Vary"], "*"):
		return false
	}
	if cc.Public || r.Explicit {
		return true
	}
	// A response that sets a cookie is kept only if its origin thought of caches
	// (section 7.3).
	return heuristicStatus(r.Status) && r.Header["Set-Cookie"] == nil
}

// Useful reports whether storing the response can ever save anything: it is fresh
// for a while, or can be validated.
func (r *Response) Useful() bool {
	return r.Lifetime > r.InitialAge || r.ETag != "" || !r.LastModified.IsZero()
}
