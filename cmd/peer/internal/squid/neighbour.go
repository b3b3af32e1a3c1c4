package squid

import (
	"net/http"
	"slices"
	"strings"
	"sync"
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

	known atomic.Pointer[known] // nil = no digest

	mu    sync.Mutex
	since time.Time // when known became nil or something; zero = never
}

// known is a digest and when it was good. It is immutable.
type known struct {
	digest    *format.Digest
	name      string    // of the Squid in Via; "" = unknown
	modified  string    // Last-Modified as it came
	confirmed time.Time // when the Squid last stood by it
	next      time.Time // when to fetch again
}

// keys are those of one question.
type keys struct {
	plain   format.Key
	variant format.Key
	varies  bool // the variant's must match as well
}

// keysFor returns the keys under which a Squid may list what a question is for.
// It lists a response that varies under two: one for the URL and one for the
// variant. The second counts only where it can be told: if we know that responses
// to the URL vary, and by one field, for the order of several is not known.
func keysFor(q *sibling.LookupRequest) (k keys, ok bool) {
	var url, variant string
	for i, id := range q.Identities {
		rest, isGet := strings.CutPrefix(id, "GET ")
		at, fields, varies := strings.Cut(rest, "\n")
		switch {
		case !isGet:
		case !varies:
			url = at
		case i == 0 && strings.IndexByte(fields, '\n') < 0: // the likeliest: known, not guessed
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

func (at *known) matches(k *keys) bool {
	return at.digest.MayContain(k.plain) && (!k.varies || at.digest.MayContain(k.variant))
}

// candidate says whether the Squid may have what a question is for. It is not
// asked for what came through it.
func (n *neighbour) candidate(k *keys, header http.Header, now time.Time) (sibling.Candidate, bool) {
	at := n.known.Load()
	if at == nil || !at.matches(k) || slices.Contains(rfc9111.Via(header), at.name) {
		return sibling.Candidate{}, false
	}
	return sibling.Candidate{
		Peer: n.peer, Service: n.addr, FalsePositiveRate: at.digest.FalsePositiveRate(), Age: now.Sub(at.confirmed),
	}, true
}

func (n *neighbour) status(now time.Time) Status {
	n.mu.Lock()
	since := n.since
	n.mu.Unlock()
	at := n.known.Load()
	s := Status{Name: n.peer, Addr: n.addr, Alive: at != nil, Since: since}
	if at == nil {
		return s
	}
	s.Current = now.Before(at.next.Add(grace))
	s.Keys, s.FalsePositiveRate, s.MemoryBytes = at.digest.Entries(), at.digest.FalsePositiveRate(), at.digest.MemoryBytes()
	s.Age = now.Sub(at.confirmed)
	return s
}
