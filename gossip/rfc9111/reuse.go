package rfc9111

import "time"

// Use says how a stored response may be used for a request.
type Use uint8

const (
	Validate             Use = iota // validate it first
	ServeFresh                      // serve it
	ServeStale                      // serve it although it is stale: the client allows it
	StaleWhileRevalidate            // serve it stale, and validate it in the background (RFC 5861 section 3)
)

// Reuse returns how the stored response, which has that age, may be used for a request with
// these directives (RFC 9111 sections 4, 4.2.4 and 5.2.1). reason is the parameter fwd of
// Cache-Status, "stale" or "request"; "" = the request need not be forwarded.
func (r *Response) Reuse(req *Directives, age time.Duration) (use Use, reason string) {
	left := r.Lifetime - age
	cc := &r.Control
	switch {
	case cc.NoCache:
		return Validate, "stale"
	case req.NoCache, req.MaxAge == 0:
		return Validate, "request"
	case req.MaxAge != Unset && age > req.MaxAge && !(left <= 0 && req.allowsStale(-left)):
		return Validate, "request"
	case req.MinFresh != Unset && left < req.MinFresh:
		return Validate, "request"
	case left > 0:
		return ServeFresh, ""
	case cc.MustRevalidate || cc.ProxyRevalidate:
		return Validate, "stale"
	case cc.StaleWhileRevalidate != Unset && -left < cc.StaleWhileRevalidate && req.MaxAge == Unset:
		return StaleWhileRevalidate, ""
	case cc.SMaxAge != Unset: // implies proxy-revalidate (section 5.2.2.10)
		return Validate, "stale"
	case req.allowsStale(-left):
		return ServeStale, ""
	}
	return Validate, "stale"
}

// allowsStale reports whether the client accepts a response that has been stale for so long.
func (d *Directives) allowsStale(stale time.Duration) bool {
	return d.MaxStale != Unset && stale <= d.MaxStale
}

// maxDisconnected is for how long a stale response may be served while its origin is
// unreachable, if the response does not say.
const maxDisconnected = time.Hour

// StaleOnError reports whether the stored response, which has that age, may be served stale
// because the origin is unreachable (status 0) or answers with 500, 502, 503 or 504 (RFC
// 5861 section 4, RFC 9111 sections 4.2.4 and 4.3.3).
func (r *Response) StaleOnError(req *Directives, status int, age time.Duration) bool {
	stale := age - r.Lifetime
	cc := &r.Control
	switch status {
	case 0, 500, 502, 503, 504:
	default:
		return false
	}
	switch {
	case cc.NoCache || cc.MustRevalidate || cc.ProxyRevalidate:
		return false
	case req.NoCache || req.MaxAge != Unset && age > req.MaxAge && !req.allowsStale(stale):
		return false
	case cc.StaleIfError != Unset:
		return stale <= cc.StaleIfError
	case cc.SMaxAge != Unset:
		return false
	case req.StaleIfError != Unset:
		return stale <= req.StaleIfError
	}
	return status == 0 && stale <= maxDisconnected
}
