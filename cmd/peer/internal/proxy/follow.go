package proxy

import (
	"hash/maphash"
	"net/http"
	"net/url"
	"sync"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// mostHops is how many redirects in a row are followed.
const mostHops = 5

// follow returns the response to which redirects lead, to hosts that a rule names; another redirect is returned as it
// is. The client's credentials, and what is known of the client, stay with the origin. The loop ends after mostHops
// redirects.
func (t rulesTransport) follow(r *http.Request, resp *http.Response) (*http.Response, error) {
	for at, hops := r.URL, 0; hops < mostHops; hops++ {
		to := target(r, at, resp)
		if to == nil {
			break
		}
		home := canonical.Authority(to.Scheme, to.Host) == canonical.Authority(r.URL.Scheme, r.URL.Host)
		if !t.rules.Follows(r, resp, to.Host) {
			break
		}
		next := r.Clone(r.Context())
		next.URL, next.Host = to, to.Host
		carrier := t.RoundTripper
		if !home {
			for _, name := range []string{"Authorization", "Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host",
				"X-Forwarded-Proto"} {
				delete(next.Header, name)
			}
			carrier = t.h.applied.Load().shared
		}
		got, err := carrier.RoundTrip(next)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		doNotShare(got.Header)
		at, resp = to, got
	}
	return resp, nil
}

// target returns where a response at a URL redirects a GET or HEAD to; nil = nowhere.
func target(r *http.Request, at *url.URL, resp *http.Response) *url.URL {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	to, err := at.Parse(resp.Header.Get("Location"))
	if err != nil || to.User != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" ||
		resp.Header.Get("Location") == "" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	to.Fragment = ""
	return to
}

// fetchCounts counts how often URLs were fetched, in a table of fixed size: a URL that has no place takes that of
// another, which is then counted anew. The zero value has seen nothing.
type fetchCounts struct {
	mu    sync.Mutex
	seed  maphash.Seed
	table *[1 << 16]struct{ url, n uint64 } // 1 MiB
}

// add counts a fetch, and returns their number.
func (u *fetchCounts) add(of string) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.table == nil {
		u.seed, u.table = maphash.MakeSeed(), new([1 << 16]struct{ url, n uint64 })
	}
	sum := maphash.String(u.seed, of)
	at := &u.table[sum%(1<<16)]
	if at.url != sum {
		at.url, at.n = sum, 0
	}
	at.n++
	return at.n
}

// rare reports whether a rule wants more uses of a URL before its response is stored. A part is not counted.
func (h *Handler) rare(set rules.Set, r *http.Request, resp *http.Response) bool {
	least := set.MinUses(r, resp)
	return least > 1 && r.Header["Range"] == nil && h.fetched.add(r.URL.String()) < least
}
