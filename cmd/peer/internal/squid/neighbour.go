package squid

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	format "github.com/summarycache/summarycache/digest/squid"
	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A neighbour is one Squid and its digest.
type neighbour struct {
	cfg       *Config
	addr      string
	peer      string // its name
	transport http.RoundTripper
	stop      context.CancelFunc // of run

	known atomic.Pointer[digestState] // never nil
}

// A digestState is the state of a Squid's digest. It is immutable.
type digestState struct {
	digest    *format.Digest // nil = none
	name      string         // of the Squid in Via; "" = unknown
	modified  string         // Last-Modified as received
	confirmed time.Time      // when the Squid last sent or confirmed it
	next      time.Time      // when to fetch again
	since     time.Time      // for how long there has been a digest, or none; zero = from the start
}

// keys are the keys of one lookup.
type keys struct {
	plain   format.Key
	variant format.Key
	varies  bool // variant must match as well
}

// keysFor returns the keys by which a Squid may advertise the object of a lookup. A Squid advertises
// a response that varies by two keys, one for the URL and one for the variant. The second can be
// computed only if the URL is known to vary, and by a single field: the order in which a Squid
// writes several fields is not known.
func keysFor(q *sibling.LookupRequest) (k keys, ok bool) {
	var url, variant string
	for i, id := range q.Identities {
		rest, isGet := strings.CutPrefix(id, "GET ")
		at, fields, varies := strings.Cut(rest, "\n")
		switch {
		case !isGet:
		case !varies:
			url = at
		case i == 0 && strings.IndexByte(fields, '\n') < 0: // the first identity is known, not guessed
			variant, _, _ = strings.Cut(fields, ":")
		}
	}
	if url == "" {
		return k, false
	}
	k.plain = format.KeyOf(format.Get, url, "")
	if variant != "" {
		k.varies = true
		k.variant = format.KeyOf(format.Get, url, format.VaryMark([]string{variant}, func(name string) (string, bool) {
			lines, ok := q.Header[name]
			return strings.Join(lines, ", "), ok
		}))
	}
	return k, true
}

func (at *digestState) matches(k *keys) bool {
	return at.digest != nil && at.digest.MayContain(k.plain) && (!k.varies || at.digest.MayContain(k.variant))
}

// candidate reports whether the Squid may have the object of a lookup. Requests that came through a
// Squid are not sent back to it.
func (n *neighbour) candidate(k *keys, header http.Header, now time.Time) (sibling.Candidate, bool) {
	at := n.known.Load()
	if !at.matches(k) || slices.Contains(rfc9111.Via(header), at.name) {
		return sibling.Candidate{}, false
	}
	return sibling.Candidate{
		Peer: n.peer, Service: n.addr, FalsePositiveRate: at.digest.FalsePositiveRate(), Age: now.Sub(at.confirmed),
	}, true
}

func (n *neighbour) status(now time.Time) Status {
	at := n.known.Load()
	s := Status{Name: n.peer, Addr: n.addr, Alive: at.digest != nil, Since: at.since}
	if at.digest == nil {
		return s
	}
	s.Current = now.Before(at.next.Add(grace))
	s.Keys, s.FalsePositiveRate, s.MemoryBytes = at.digest.Entries(), at.digest.FalsePositiveRate(), at.digest.MemoryBytes()
	s.Age = now.Sub(at.confirmed)
	return s
}
