package rfc9111

import "time"

const (
	heuristicShare = 10             // a heuristic lifetime is a tenth of the time since the last modification
	maxHeuristic   = 24 * time.Hour // and at most this
)

// lifetime returns the freshness lifetime in a shared cache (RFC 9111 section 4.2.1):
// s-maxage, max-age, Expires minus Date, or a heuristic.
func (r *Response) lifetime(targeted bool) (life time.Duration, explicit bool) {
	switch {
	case r.Control.SMaxAge != Unset:
		return r.Control.SMaxAge, true
	case r.Control.MaxAge != Unset:
		return r.Control.MaxAge, true
	}
	if lines, ok := r.Header["Expires"]; ok && !targeted {
		// An invalid date, such as "0", means that it has expired (section 5.3); so do several dates.
		expires, ok := ParseDate(lines[0])
		if !ok || len(lines) > 1 {
			return 0, true
		}
		return min(max(0, expires.Sub(r.Date)), MaxDelta), true
	}
	return r.heuristic(), false
}

// heuristic returns the lifetime of a response that states none (section 4.2.2).
func (r *Response) heuristic() time.Duration {
	if !heuristicStatus(r.Status) && !r.Control.Public || r.LastModified.IsZero() || !r.LastModified.Before(r.Date) {
		return 0
	}
	return min(r.Date.Sub(r.LastModified)/heuristicShare, maxHeuristic).Truncate(time.Second)
}

// heuristicStatus reports whether responses with a status may be stored without an
// explicit lifetime (RFC 9110 section 15.1). Partial responses are not stored.
func heuristicStatus(status int) bool {
	switch status {
	case 200, 203, 204, 300, 301, 308, 404, 405, 410, 501:
		return true
	}
	return false
}

// requestStatus reports whether a status complains about something in the request that is not in the
// key: its fields, its size, its framing, its conditions or its client (RFC 6585). Such an answer says
// nothing to other clients, whatever lifetime it states, except a 400 or 414 to a blameless request ([Blameless]).
func requestStatus(status int) bool {
	switch status {
	case 400, 401, 402, 403, 406, 407, 408, 411, 412, 413, 414, 415, 416, 417, 421, 422, 425, 426, 428, 429, 431, 511:
		return true
	}
	return false
}

// ofItsURL reports whether the response is an error that its request's URL alone provoked, with a lifetime.
func (r *Response) ofItsURL(req *Directives) bool {
	return (r.Status == 400 || r.Status == 414) && r.Explicit && req != nil && req.Blameless
}

// understoodStatus reports whether the caching rules of a status are implemented,
// for must-understand (RFC 9111 section 5.2.2.3).
func understoodStatus(status int) bool {
	return heuristicStatus(status) || status == 302 || status == 303 || status == 307
}

// An Obstacle is a reason not to store a response in a shared cache. Its text is a token
// for the detail of Cache-Status.
type Obstacle uint8

// The obstacles; the zero value is none.
const (
	// the status needs an explicit lifetime, or is never stored (206, 304, 400, 416, …)
	StatusObstacle  Obstacle = iota + 1
	RequestObstacle          // the request says no-store
	NoStoreObstacle          // the response says no-store
	PrivateObstacle          // it is for one user
	// the request has Authorization, and the response does not permit storing then (section 3.5)
	AuthorizationObstacle
	VaryObstacle     // it says "Vary: *", or what is no list of field names
	CookieObstacle   // it sets a cookie, and has neither a lifetime nor public
	ExpiredObstacle  // it is stale and has no validator: storing it saves nothing
	LifetimeObstacle // it states no lifetime and has no validator: storing it saves nothing
	Obstacles        // the number of values, zero included
)

var obstacleNames = [Obstacles]string{"", "status", "request-no-store", "no-store", "private", "authorization", "vary",
	"set-cookie", "expired", "no-lifetime"}

func (o Obstacle) String() string {
	if o >= Obstacles {
		return "unknown"
	}
	return obstacleNames[o]
}

// Obstacle returns why a shared cache may not store the response to a GET (RFC 9111 section 3),
// or why storing it would save nothing; 0 = neither. req has the directives of the request,
// nil = none; authorized says that the request had an Authorization field (section 3.5).
func (r *Response) Obstacle(req *Directives, authorized bool) Obstacle {
	if o := r.forbidden(req, authorized); o != 0 || r.Useful() {
		return o
	}
	if r.Explicit {
		return ExpiredObstacle
	}
	return LifetimeObstacle
}

// Storable reports whether a shared cache may store the response. Its arguments are those of
// [Response.Obstacle]. Whether storing it saves anything does not matter.
func (r *Response) Storable(req *Directives, authorized bool) bool {
	return r.forbidden(req, authorized) == 0
}

// forbidden returns why the response may not be stored; 0 = it may.
func (r *Response) forbidden(req *Directives, authorized bool) Obstacle {
	cc := &r.Control
	switch {
	case r.Status < 200 || r.Status > 599 || r.Status == 206 || r.Status == 304, requestStatus(r.Status) && !r.ofItsURL(req):
		return StatusObstacle
	case req != nil && req.NoStore:
		return RequestObstacle
	case cc.MustUnderstand && !understoodStatus(r.Status):
		return StatusObstacle
	case cc.NoStore && !cc.MustUnderstand:
		// an operator's rule says no-store because of the cookie
		if r.Header["Set-Cookie"] != nil && r.Header[ClusterControl] != nil {
			return CookieObstacle
		}
		return NoStoreObstacle
	case cc.Private:
		return PrivateObstacle
	case authorized && !cc.MustRevalidate && !cc.Public && cc.SMaxAge == Unset:
		return AuthorizationObstacle
	case variesByAnything(r.Header["Vary"]):
		return VaryObstacle
	case cc.Public || r.Explicit:
		return 0
	case !heuristicStatus(r.Status):
		return StatusObstacle
	case r.Header["Set-Cookie"] != nil: // stored only if the origin says something about caches (section 7.3)
		return CookieObstacle
	}
	return 0
}

// variesByAnything reports whether a Vary has "*", or a member that is not the name of a field: then
// nobody knows by what the response varies.
func variesByAnything(vary []string) bool {
	for name := range Members(vary) {
		if name == "*" || !IsToken(name) {
			return true
		}
	}
	return false
}

// Useful reports whether storing the response can save anything: it is fresh, it can be
// validated, or the origin says that it may be served stale, as with max-age=0, stale-while-revalidate=60.
func (r *Response) Useful() bool {
	if r.Lifetime > r.InitialAge || r.ETag != "" || !r.LastModified.IsZero() {
		return true
	}
	cc := &r.Control
	return r.Explicit && !cc.NoCache && !cc.MustRevalidate && !cc.ProxyRevalidate &&
		max(cc.StaleWhileRevalidate, cc.StaleIfError) > r.InitialAge-r.Lifetime
}
