package rules

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Response writes the rules' decision about the origin's answer to q into its header, which
// belongs to the caller.
func (s Set) Response(q *http.Request, status int, h http.Header, now time.Time) {
	switch {
	case q.Method != http.MethodGet && q.Method != http.MethodHead:
		return
	case status == http.StatusNotModified:
		s.confirm(q, h)
		return
	}
	if len(s) == 0 && h["Set-Cookie"] == nil {
		return
	}
	resp := rfc9111.NewResponse(status, h, 0, now)
	if h["Set-Cookie"] != nil {
		switch rule := s.says(q, resp, func(r *Rule) bool { return r.SetCookie != "" }); {
		case rule == nil || rule.SetCookie == Refuse:
			if resp.Storable(nil, false) {
				h[rfc9111.ClusterControl] = []string{"no-store"}
			}
			return
		case rule.SetCookie == Drop:
			delete(h, "Set-Cookie")
		}
	}
	if resp.Control.Private || resp.Control.NoStore && !resp.Control.MustUnderstand || resp.Control.NoCache {
		return
	}
	if life, rule := s.lifetime(q, resp); rule != nil {
		h[rfc9111.ClusterControl] = []string{targeted(&resp.Control, life, rule.Name)}
	}
}

// says returns the first rule that is for a response and says something.
func (s Set) says(q *http.Request, resp *rfc9111.Response, something func(*Rule) bool) *Rule {
	for i := range s {
		if r := &s[i]; something(r) && r.wants(q) && r.fits(resp.Status, resp.Header) {
			return r
		}
	}
	return nil
}

// fits reports whether a rule is for a response of a status.
func (r *Rule) fits(status int, h http.Header) bool {
	ok := r.Statuses == nil
	for _, of := range r.Statuses {
		ok = ok || of.From <= status && status <= of.To
	}
	if !ok || r.Types == nil {
		return ok
	}
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return anyGlob(r.Types, strings.ToLower(strings.TrimSpace(media)))
}

// lifetime returns the lifetime of a response by the rules, and the last rule that changed it;
// nil = it is unchanged.
func (s Set) lifetime(q *http.Request, resp *rfc9111.Response) (life time.Duration, by *Rule) {
	life = resp.Lifetime
	if !resp.Explicit {
		by = s.says(q, resp, func(r *Rule) bool {
			return r.TTL != nil && (r.Statuses != nil || resp.Status < 500 && mayBeKept(resp)) && !(r.Anonymous && q.Header["Cookie"] != nil)
		})
		if by != nil {
			life = *by.TTL + resp.InitialAge
		}
	}
	if !resp.Explicit && by == nil && life == 0 {
		return 0, nil // nothing that a bound could be for
	}
	if r := s.says(q, resp, func(r *Rule) bool { return r.MinTTL != nil }); r != nil && life < *r.MinTTL+resp.InitialAge {
		life, by = *r.MinTTL+resp.InitialAge, r
	}
	if r := s.says(q, resp, func(r *Rule) bool { return r.MaxTTL != nil }); r != nil && life > *r.MaxTTL+resp.InitialAge {
		life, by = *r.MaxTTL+resp.InitialAge, r
	}
	return life, by
}

// mayBeKept reports whether a response without a lifetime may be kept for its status.
func mayBeKept(resp *rfc9111.Response) bool {
	bare := *resp
	bare.Header = http.Header{}
	return bare.Storable(nil, false)
}

// confirm is Response for a 304. The rules decided about its response when that came, by its
// status and type, which a 304 does not have. That decision stands, unless the 304 forbids
// what was allowed, or no rule matches the request any more.
func (s Set) confirm(q *http.Request, h http.Header) {
	rule := s.says(q, &rfc9111.Response{Status: http.StatusOK, Header: h}, func(r *Rule) bool { return r.SetCookie == Store })
	if rule == nil {
		delete(h, "Set-Cookie")
	}
	if h["Cache-Control"] == nil && h["Expires"] == nil && h["Cdn-Cache-Control"] == nil || h[rfc9111.ClusterControl] != nil {
		return
	}
	cc := rfc9111.NewResponse(http.StatusOK, h, 0, time.Time{}).Control
	if !cc.NoStore && !cc.Private && !cc.NoCache {
		for i := range s {
			if r := &s[i]; (r.TTL != nil || r.MinTTL != nil || r.MaxTTL != nil) && r.wants(q) {
				delete(h, "Cache-Control")
				delete(h, "Expires")
				delete(h, "Cdn-Cache-Control")
				return
			}
		}
	}
	h[rfc9111.ClusterControl] = []string{""} // what an earlier rule decided does not hold
}

// targeted writes directives with another lifetime as a structured dictionary.
func targeted(cc *rfc9111.Directives, life time.Duration, rule string) string {
	var b strings.Builder
	name := "max-age="
	if cc.SMaxAge != rfc9111.Unset {
		name = "s-maxage="
	}
	b.WriteString(name)
	b.WriteString(strconv.FormatInt(int64(min(life, rfc9111.MaxDelta)/time.Second), 10))
	for _, flag := range []struct {
		set  bool
		name string
	}{{cc.Public, "public"}, {cc.MustRevalidate, "must-revalidate"}, {cc.ProxyRevalidate, "proxy-revalidate"}, {cc.MustUnderstand, "must-understand"},
		{cc.NoStore, "no-store"}} {
		if flag.set {
			b.WriteString(", " + flag.name)
		}
	}
	for _, d := range []struct {
		value time.Duration
		name  string
	}{{cc.StaleWhileRevalidate, "stale-while-revalidate"}, {cc.StaleIfError, "stale-if-error"}} {
		if d.value != rfc9111.Unset {
			b.WriteString(", " + d.name + "=" + strconv.FormatInt(int64(d.value/time.Second), 10))
		}
	}
	if len(cc.NoCacheFields) > 0 {
		b.WriteString(`, no-cache="` + strings.Join(cc.NoCacheFields, ", ") + `"`)
	}
	b.WriteString(`, rule="` + rule + `"`)
	return b.String()
}

// DecidedBy returns the name of the rule that gave a stored response its lifetime, "" if
// none did.
func DecidedBy(h http.Header) string {
	_, rest, ok := strings.Cut(h.Get(rfc9111.ClusterControl), `rule="`)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, `"`)
	return name
}
