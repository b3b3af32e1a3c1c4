package proxy

import (
	"encoding/json"
	"hash/fnv"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// Sums returns a sum for each host and path that a peer serves, of all that decides what an answer is: origins, and the
// rules that change what is stored, fetched or delivered. Two peers that serve one host unlike give each other's
// clients the wrong answers. A site with a name is the same site under any origins. A forward proxy has rules alone,
// under the name "*".
func (s Settings) Sums() map[string]uint64 {
	sums := make(map[string]uint64)
	put := func(host, path string, origins []*url.URL, more ...any) {
		var from []string
		for _, o := range origins {
			from = append(from, o.String())
		}
		var rest []rules.Rule
		for _, r := range s.Rules {
			name, _ := canonical.SplitHost(host)
			if r.Sites == nil || host == "*" ||
				slices.ContainsFunc(r.Sites, func(p string) bool { return invalidation.Glob(p, host) || invalidation.Glob(p, name) }) {
				r.Name, r.Where, r.Deny, r.Rate, r.MaxBody, r.Failover = "", "", nil, nil, nil, nil
				if decides(r) {
					rest = append(rest, r)
				}
			}
		}
		b, _ := json.Marshal([]any{from, rest, s.PassFields, s.TrustedProxies != nil, more})
		sum := fnv.New64a()
		sum.Write(b)
		sums[host+strings.TrimSuffix(path, "/")] = sum.Sum64()
	}
	switch {
	case s.Origin != nil && !s.PreserveHost: // its URL is a part of the key
		put(canonical.Authority(s.Origin.Scheme, s.Origin.Host), s.Origin.Path, nil)
	case s.Origin != nil:
		put("*", "", []*url.URL{s.Origin})
	case s.Sites == nil:
		put("*", "", nil)
	}
	for _, site := range s.Sites {
		origins, hosts := site.Origins, site.Hosts
		if site.Name != "" {
			origins, hosts = nil, []string{site.Name}
		} else if len(hosts) == 0 {
			hosts = []string{"*"}
		}
		for _, h := range hosts {
			put(h, site.Path, origins, site.Host)
		}
	}
	return sums
}

// decides reports whether a rule has anything but conditions.
func decides(r rules.Rule) bool {
	r.Scheme, r.Sites, r.Paths, r.Cookies, r.Headers, r.Clients, r.Statuses, r.Types = "", nil, nil, nil,
		nil, nil, nil, nil
	return !reflect.DeepEqual(r, rules.Rule{})
}
