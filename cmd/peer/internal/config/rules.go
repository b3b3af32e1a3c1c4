package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

var (
	// keys that are conditions
	ruleMatchers = []string{"when", "scheme", "site", "path", "cookie", "header", "client", "status", "type"}
	ofClients    = []string{"deny", "rate", "max-body"} // keys that may depend on the client
	// ofKeys are keys that decide what an object is stored under. Siblings, whose lookups have no other fields than
	// lookedUp, must decide alike.
	ofKeys   = []string{"query-keep", "query-drop", "query-sort", "encodings", "compress"}
	lookedUp = []string{"Accept", "Accept-Charset", "Accept-Language", "Origin", "User-Agent"}
)

// ofResponses reports whether a key is a setting of answers.
func ofResponses(key string) bool {
	for field := range reflect.TypeFor[rules.Rule]().Fields() {
		if field.Tag.Get("name") == key {
			return field.Tag.Get("of") == "answer"
		}
	}
	return false
}

// readRules reads the rules of the file, and appends those of --default-ttl and --compress.
func (c *checker) readRules(items []section) {
	for i, item := range items {
		r := rules.Rule{Name: strconv.Itoa(i + 1), Where: fmt.Sprintf("%s:%d", c.File, item.line)}
		c.fill(item, &r)
		c.checkRule(item, &r)
		c.Rules = append(c.Rules, r)
	}
	if c.DefaultTTL != nil {
		c.Rules = append(c.Rules, rules.Rule{Name: "default-ttl", TTL: c.DefaultTTL})
	}
	if len(c.Compress) > 0 {
		c.Rules = append(c.Rules, rules.Rule{Name: "compress", Compress: c.Compress})
	}
}

// checkRule refuses a rule that does nothing, one that would decide about a request by its
// response, and one for a site that does not exist.
func (c *checker) checkRule(item section, r *rules.Rule) {
	does := false
	refuse := func(wrong bool, key, why string) {
		if wrong {
			c.failKey(item, key, "", errors.New(why))
		}
	}
	c.checkNever(item, r)
	private, personal := r.Cookies != nil || r.Uses("cookie."), r.Cookies != nil || r.Headers != nil ||
		r.Uses("cookie.", "header.", "client")
	for _, field := range fieldsOf(r) {
		private = private || !slices.Contains(lookedUp, field)
	}
	for key := range item.entries {
		if slices.Contains(ruleMatchers, key) {
			continue
		}
		does = true
		refuse(r.OfResponses() && !ofResponses(key), key,
			"is decided before there is an answer: it cannot depend on the status or type of the answer")
		refuse((r.Clients != nil || r.Uses("client")) && !slices.Contains(ofClients, key), key,
			"cannot depend on the client's address: all clients share the objects of a URL")
		refuse(private && slices.Contains(ofKeys, key), key, "cannot depend on a cookie or on fields other than "+
			strings.Join(lookedUp, ", ")+": siblings, which must decide alike, do not get them")
		refuse(r.Uses("outcome") && key != "response-header" && key != "error-page", key,
			"cannot depend on the outcome, which only clients get: only response-header can")
	}
	if !does {
		c.errs = append(c.errs, fmt.Errorf("%s: the rule has conditions but no effect, such as ttl: 1h", r.Where))
	}
	if r.MinTTL != nil && r.MaxTTL != nil && *r.MinTTL > *r.MaxTTL {
		c.failKey(item, "min-ttl", item.entries["min-ttl"].values[0], errors.New("is more than max-ttl"))
	}
	if r.Cookies != nil && r.TTL != nil && r.Key == nil {
		c.failKey(item, "ttl", item.entries["ttl"].values[0],
			errors.New("never applies to a request with a cookie, and so not together with cookie"))
	}
	refuse(len(r.IgnoreOrigin) > 0 && r.TTL == nil, "ignore-origin",
		"needs a ttl in the same rule: it is what applies instead")
	for _, part := range r.Key {
		in, name, _ := strings.Cut(part, ".")
		if why := c.dropped(name); in == "header" && why != "" {
			c.failKey(item, "key", name, errors.New(why))
		}
		if in == "cookie" && r.CookiesKeep != nil &&
			!slices.ContainsFunc(r.CookiesKeep, func(p string) bool { return invalidation.Glob(p, name) }) {
			c.failKey(item, "key", name, errors.New("is a cookie that cookies-keep removes"))
		}
	}
	refuse(r.QueryKeep != nil && r.QueryDrop != nil, "query-drop",
		"cannot be combined with query-keep, which drops all other parameters")
	if r.Redirect != nil && strings.Contains(r.Redirect.Text, "*") {
		c.checkCapture(item, "redirect", r)
	}
	if r.Rewrite != nil {
		c.checkRewrite(item, r, personal)
	}
	anyStatus := r.Statuses == nil && !r.Uses("status")
	refuse(r.ErrorPage != nil && anyStatus, "error-page",
		"needs the status that it is for, such as status: [502, 503, 504]")
	refuse(r.Failover != nil && anyStatus, "failover",
		"needs the status with which another origin is asked, such as status: [502, 503, 504]")
	if (r.Scheme != "" || r.Uses("scheme")) && c.HTTPSListen == "" && len(c.TrustedProxies) == 0 && c.Reverse() {
		c.failKey(item, "scheme", r.Scheme,
			errors.New("needs --https or --trusted-proxies: the peer does not know otherwise whether a client "+
				"uses https"))
	}
	hosts := c.Sites
	if c.Origin != nil && c.PreserveHost != "on" && len(c.TrustedProxies) == 0 { // all URLs have its host
		hosts = []proxy.Site{{Hosts: []string{canonical.Authority(c.Origin.Scheme, c.Origin.Host)}}}
	}
	for _, pattern := range r.Sites {
		if len(hosts) > 0 && !slices.ContainsFunc(hosts, func(s proxy.Site) bool { return matches(s, pattern) }) {
			c.failKey(item, "site", pattern,
				errors.New("is not a host of a site: a site with a name is meant by its name, not by its hosts, and "+
					"--origin alone by its own host"))
		}
	}
}

// checkRewrite refuses a rule that gives clients one object, although the origin gets several paths.
func (c *checker) checkRewrite(item section, r *rules.Rule, personal bool) {
	switch {
	case personal:
		c.failKey(item, "rewrite", "", errors.New("cannot depend on a cookie or header: all clients share the "+
			"objects of a URL"))
	case !c.Reverse():
		c.failKey(item, "rewrite", "", errors.New("is for a reverse proxy"))
	case strings.Contains(r.Rewrite.Text, "*"):
		c.checkCapture(item, "rewrite", r)
	}
}

// checkCapture refuses a rule whose target has a * unless each of its paths has one *.
func (c *checker) checkCapture(item section, key string, r *rules.Rule) {
	if r.Paths == nil || slices.ContainsFunc(r.Paths, func(p string) bool { return strings.Count(p, "*") != 1 }) {
		c.failKey(item, key, item.entries[key].values[0],
			errors.New("has a *: then each path of the rule needs one, too"))
	}
}

// matches reports whether the pattern of a rule can match URLs of the site.
func matches(s proxy.Site, pattern string) bool {
	if s.Name != "" {
		return invalidation.Glob(pattern, s.Name)
	}
	return len(s.Hosts) == 0 || slices.ContainsFunc(s.Hosts, func(host string) bool {
		return invalidation.Glob(pattern, host) || invalidation.Glob(host, pattern) ||
			invalidation.Glob(pattern+":*", host)
	})
}

// lines returns the items of a list as text, with their keys in the order of the file.
func lines(items []section) (out []string) {
	for _, item := range items {
		var parts []string
		for _, key := range item.keys {
			e := item.entries[key]
			value := strings.Join(e.values, ", ")
			if e.list {
				value = "[" + value + "]"
			}
			parts = append(parts, key+": "+value)
		}
		out = append(out, strings.Join(parts, ", "))
	}
	return out
}
