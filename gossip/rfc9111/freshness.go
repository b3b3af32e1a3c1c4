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

// An Obstacle is what keeps a response out of a shared cache. Its text is a token for
// the detail of Cache-Status.
type Obstacle uint8

// The obstacles; the zero value is none.
const (
	StatusObstacle        Obstacle = iota + 1 // the status allows it only with a lifetime, or never (206, 304)
	RequestObstacle                           // the request says no-store
	NoStoreObstacle                           // the response does
	PrivateObstacle                           // it is for one user
	AuthorizationObstacle                     // the request has Authorization, and the response does not permit that (section 3.5)
	VaryObstacle                              // it varies by more than the request's fields
	CookieObstacle                            // it sets a cookie, and has neither a lifetime nor public
	ExpiredObstacle                           // it has no time left and no validator: storing it saves nothing
	LifetimeObstacle                          // it states no lifetime and has no validator: likewise
	Obstacles                                 // their number, the zero value included
)

var obstacleNames = [Obstacles]string{"", "status", "request-no-store", "no-store", "private", "authorization", "vary", "set-cookie", "expired", "no-lifetime"}

func (o Obstacle) String() string {
	if o >= Obstacles {
		return "unknown"
	}
	return obstacleNames[o]
}

// Obstacle returns what keeps a shared cache from storing the response to a GET (RFC 9111
// section 3) or from gaining anything by it, given the directives of the request, nil = none,
// and whether that had an Authorization field (section 3.5). 0 = nothing does.
func (r *Response) Obstacle(req *Directives, authorized bool) Obstacle {
	if o := r.forbidden(req, authorized); o != 0 || r.Useful() {
		return o
	}
	if r.Explicit {
		return ExpiredObstacle
	}
	return LifetimeObstacle
}

// Storable reports whether a shared cache may store the response. It takes what
// [Response.Obstacle] does, and does not ask whether storing it is of use.
func (r *Response) Storable(req *Directives, authorized bool) bool {
	return r.forbidden(req, authorized) == 0
}

// forbidden returns what forbids to store the response; 0 = nothing.
func (r *Response) forbidden(req *Directives, authorized bool) Obstacle {
	cc := &r.Control
	switch {
	case r.Status < 200 || r.Status > 599 || r.Status == 206 || r.Status == 304:
		return StatusObstacle
	case req != nil && req.NoStore:
		return RequestObstacle
	case cc.MustUnderstand && !understoodStatus(r.Status):
		return StatusObstacle
	case cc.NoStore && !cc.MustUnderstand:
		if r.Header["Set-Cookie"] != nil && r.Header[ClusterControl] != nil { // that a cookie keeps it out is what [ClusterControl] says here
			return CookieObstacle
		}
		return NoStoreObstacle
	case cc.Private:
		return PrivateObstacle
	case authorized && !cc.MustRevalidate && !cc.Public && cc.SMaxAge == Unset:
		return AuthorizationObstacle
	case hasToken(r.Header["Vary"], "*"):
		return VaryObstacle
	case cc.Public || r.Explicit:
		return 0
	case !heuristicStatus(r.Status):
		return StatusObstacle
	case r.Header["Set-Cookie"] != nil: // kept only if its origin thought of caches (section 7.3)
		return CookieObstacle
	}
	return 0
}

// Useful reports whether storing the response can ever save anything: it is fresh
// for a while, or can be validated.
func (r *Response) Useful() bool {
	return r.Lifetime > r.InitialAge || r.ETag != "" || !r.LastModified.IsZero()
}
