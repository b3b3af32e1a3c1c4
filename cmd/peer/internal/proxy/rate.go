package proxy

import (
	"hash/maphash"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

const (
	rateSets = 1 << 12 // sets of addresses that are remembered
	rateWays = 8       // addresses in each: 512 KiB in all
)

// rates limits requests by the address of their client, by the virtual scheduling algorithm of GCRA (ITU-T
// I.371). Its memory is fixed: an address that has no place takes the one that has been idle for longest,
// so a flood of addresses can only free others of their limit. The zero value has seen nothing.
type rates struct {
	mu   sync.Mutex
	seed maphash.Seed
	sets *[rateSets][rateWays]clientRate
}

// A clientRate is what is known of an address under a rule.
type clientRate struct {
	key uint64
	due time.Duration // since began, when its next request is due at the rule's rate; 0 = the place is free
}

var began = time.Now()

// take counts a request at a time. It returns 0, or how long the client must wait before the next one.
func (l *rates) take(rule *rules.Rule, client string, now time.Time) time.Duration {
	ip, _ := netip.ParseAddr(client)
	if ip = ip.Unmap().WithZone(""); ip.Is6() {
		p, _ := ip.Prefix(64) // one client may have all of these
		ip = p.Addr()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sets == nil {
		l.seed, l.sets = maphash.MakeSeed(), new([rateSets][rateWays]clientRate)
	}
	key := maphash.Comparable(l.seed, struct {
		rule string
		ip   netip.Addr
	}{rule.Name, ip})
	set := &l.sets[key%rateSets]
	at := &set[0]
	for i := range set {
		if set[i].key == key {
			at = &set[i]
			break
		}
		if set[i].due < at.due {
			at = &set[i]
		}
	}
	if at.key != key {
		*at = clientRate{key: key}
	}
	since := now.Sub(began)
	interval := rule.Rate.Per / time.Duration(rule.Rate.Requests)
	due := max(at.due, since)
	if wait := due + interval - since - rule.Rate.Per; wait > 0 {
		return wait
	}
	at.due = due + interval
	return 0
}

// limited answers a request that exceeds the rate of a rule; ok is false if it doesn't.
func (h *Handler) limited(w http.ResponseWriter, r *http.Request, v *appliedSettings, rule *rules.Rule) (res engine.Result, ok bool) {
	if rule == nil {
		return res, false
	}
	wait := h.rates.take(rule, v.client(r), time.Now())
	if wait <= 0 {
		return res, false
	}
	w.Header()["Retry-After"] = []string{strconv.Itoa(int((wait + time.Second - 1) / time.Second))}
	return h.cache.Refuse(w, r, engine.ClientError, http.StatusTooManyRequests, "rate",
		"too many requests from this address"), true
}

// bodyLimit returns r such that its body has at most so many bytes, 0 = any number; no says that it is
// known to have more. After an error the connection is closed, since the rest of the body follows on it.
func bodyLimit(w http.ResponseWriter, r *http.Request, most int64) (_ *http.Request, no *refusal) {
	switch {
	case most == 0 || r.ContentLength >= 0 && r.ContentLength <= most:
		return r, nil
	case r.ContentLength > most:
		w.Header().Set("Connection", "close")
		return r, &refusal{http.StatusRequestEntityTooLarge, "body-too-large", "the body is longer than the " +
			strconv.FormatInt(most, 10) + " bytes that a rule allows"}
	}
	out := *r
	out.Body = http.MaxBytesReader(w, r.Body, most)
	return &out, nil
}
