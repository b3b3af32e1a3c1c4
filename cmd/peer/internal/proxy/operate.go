package proxy

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// Target returns the target of an invalidation of every stored response of an absolute URL, all
// variants included, if kind is [invalidation.Identity]. It is for all URLs that begin with rawURL, or
// match it as a pattern, if kind is Prefix or Pattern; rawURL must have at least a scheme and a host, and
// a * only behind them. At a reverse proxy for one origin each may be a path.
func (h *Handler) Target(rawURL string, kind invalidation.Kind) (invalidation.Target, error) {
	v := h.applied.Load()
	u, err := v.parse(rawURL)
	if err != nil {
		return invalidation.Target{}, err
	}
	if kind == invalidation.Pattern && strings.Contains(u.Host, "*") {
		return invalidation.Target{}, fmt.Errorf("%q has a * in its host: a pattern is for one host", rawURL)
	}
	return v.targetOf(u, kind), nil
}

func (v *appliedSettings) targetOf(u *url.URL, kind invalidation.Kind) invalidation.Target {
	if kind == invalidation.Identity {
		r, _ := v.Rules.Request(&http.Request{Method: http.MethodGet, URL: u}, netip.Addr{}, true, nil)
		u = r.URL
	}
	t := engine.TargetOf(rfc9111.CanonicalURL(u))
	t.Kind = kind
	return t
}

// Invalidated removes the responses that an invalidation of the cluster is for, or makes them stale,
// and returns their number. Where clients use both schemes, it applies to both URLs.
func (h *Handler) Invalidated(t invalidation.Target) int { return h.remove(t, h.cache.Invalidated) }

// Purge is Invalidated for this peer alone: siblings keep their copies.
func (h *Handler) Purge(t invalidation.Target) int { return h.remove(t, h.cache.Purge) }

func (h *Handler) remove(t invalidation.Target, remove func(invalidation.Target) int) int {
	n := remove(t)
	if other := otherScheme(t.Name, rfc9111.Identity("", nil, nil)); h.applied.Load().bySchemes && other != "" &&
		t.Kind != invalidation.Tag {
		t.Name = other
		n += remove(t)
	}
	return n
}

// bothSchemes is a cluster whose invalidations of a URL apply to the URL with the other scheme, too.
// It is used where clients use both.
type bothSchemes struct {
	sibling.Cluster
	h *Handler
}

func (c bothSchemes) Concerning(identity string) ([]invalidation.ID, bool) {
	ids, ok := c.Cluster.Concerning(identity)
	if other := otherScheme(identity, rfc9111.Identity("", nil, nil)); other != "" && c.h.applied.Load().bySchemes {
		more, too := c.Cluster.Concerning(other)
		for _, id := range more {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		ok = ok && too && len(ids) <= invalidation.MaxConcerning
	}
	return ids, ok
}

// otherScheme exchanges http and https in s, which is a URL behind a prefix; "" = it has neither.
func otherScheme(s, prefix string) string {
	if rest, ok := strings.CutPrefix(s, prefix+"http://"); ok {
		return prefix + "https://" + rest
	}
	if rest, ok := strings.CutPrefix(s, prefix+"https://"); ok {
		return prefix + "http://" + rest
	}
	return ""
}

// invalidates is [rfc9111.Invalidated] for the URLs under which responses are stored. It maps
// what is named beside the target to those, and adds each URL with the other scheme where clients
// use both.
func (h *Handler) invalidates(r *http.Request, target *url.URL, status int, header http.Header) []string {
	if rfc9111.IsSafe(r.Method) {
		return nil
	}
	v := h.applied.Load()
	site := v.siteOf(target)
	named := http.Header{}
	for name, of := range map[string]http.Header{"Location": header, "Content-Location": header, "Destination": r.Header} {
		ref, err := url.Parse(of.Get(name))
		if err != nil || of.Get(name) == "" {
			continue
		}
		if site != nil && site.alone && name == "Destination" { // a client names this peer
			ref.Scheme, ref.Host = "", ""
		}
		switch {
		case site == nil:
		case site.alone && ref.Host == "" && strings.HasPrefix(ref.Path, "/"):
			belowPath(site.Origins[0], ref)
		case site.Name != "" && ref.Host != "":
			if _, ours := site.serves(canonical.Authority(ref.Scheme, ref.Host), ref.Path, false); ours {
				ref.Host = site.Name
			}
		}
		if ref.Host != "" && v.bySchemes {
			ref.Scheme = target.Scheme
		}
		whole := canonical.URL(target.ResolveReference(ref))
		named[name] = []string{whole.String()}
	}
	urls := rfc9111.Invalidated(&http.Request{Method: r.Method, Header: named}, target, status, named)
	if v.bySchemes {
		for _, u := range urls {
			urls = append(urls, otherScheme(u, ""))
		}
	}
	return urls
}

// Explain returns what this peer would do with a request for a URL, and which rules decide that.
// At a reverse proxy for one origin the URL may be a path. Nothing is changed.
func (h *Handler) Explain(method, rawURL string, header http.Header) (engine.Explanation, []rules.Decision, error) {
	v := h.applied.Load()
	u, err := v.parse(rawURL)
	if err != nil {
		return engine.Explanation{}, nil, err
	}
	r, effect, decisions := v.decisions(method, u, header)
	e := h.cache.Explain(r)
	for i := range e.Stored {
		e.Stored[i].Rule = rules.DecidedBy(e.Stored[i].Header)
	}
	if effect.Bypass {
		e.Verdict, e.Reason, e.Identities = engine.WouldPass, "rule", nil
	}
	return e, decisions, nil
}

// decisions returns the request for a URL as the rules change it, and what they decide about it and its answer.
func (v *appliedSettings) decisions(method string, u *url.URL, header http.Header) (
	r *http.Request, e rules.Effect, all []rules.Decision) {
	header, _ = v.fields.Clean(header, method, false, false)
	decided := func(d rules.Decision) { all = append(all, d) }
	r, e = v.Rules.Request(&http.Request{Method: method, URL: u, Host: u.Host, Header: header}, netip.Addr{}, false, decided)
	v.Rules.AboutAnswers(r, decided)
	if len(v.Rules) > 0 && canonical.Ambiguous(u) {
		decided(rules.Decision{What: "matches only as far as it restricts, since some servers take this path for " +
			"another", Rule: "with a path"})
	}
	return r, e, all
}

// Decisions returns what the rules of s decide about a request for a URL, and the URL as the cache has it. It needs no
// [Handler]. clientTLS is as in [Config].
func (s Settings) Decisions(clientTLS bool, method, rawURL string, header http.Header) (string, []rules.Decision, error) {
	v := &appliedSettings{Settings: s, fields: canonical.NewFields(s.PassFields)}
	v.bySchemes = s.TrustedProxies != nil || clientTLS
	for _, site := range s.allSites() {
		v.sites = append(v.sites, newUpstream(site, nil))
	}
	u, err := v.parse(rawURL)
	if err != nil {
		return "", nil, err
	}
	r, _, all := v.decisions(method, u, header)
	return r.URL.String(), all, nil
}

// Candidates returns the siblings to which a lookup would be sent, in this order, with the
// expectations of each. It sends nothing.
func (h *Handler) Candidates(q sibling.LookupRequest) []sibling.Ranked {
	if h.siblings == nil {
		return nil
	}
	return h.siblings.Inside().Plan(q)
}

// SiblingLoad returns how siblings answer at the moment: the deadline of the next request, the share of the requests of
// the last half minute that got no answer in time, and the bytes of bodies from each zone.
func (h *Handler) SiblingLoad() (deadline time.Duration, lost float64, zoneBytes map[string]int64) {
	if h.siblings == nil {
		return 0, 0, nil
	}
	of := h.siblings.Inside()
	deadline, lost = of.Load()
	return deadline, lost, of.ZoneBytes()
}

// parse returns the URL under which the cache stores the response for an operator's URL.
func (v *appliedSettings) parse(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	paths := v.sites != nil && v.sites[0].alone
	switch {
	case u.IsAbs():
	case !paths:
		return nil, fmt.Errorf("%q is not an absolute URL, such as http://example.com/a", rawURL)
	case !strings.HasPrefix(rawURL, "/"):
		return nil, fmt.Errorf("%q is neither an absolute URL, such as http://example.com/a, nor a path, such as /a",
			rawURL)
	}
	target, no := v.target(&http.Request{URL: u}, forwarded{scheme: "http"})
	if no != nil {
		return nil, fmt.Errorf("%q: %s", rawURL, no.text)
	}
	return &target, nil
}
