//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// A poisonPair is a peer and its sibling.
type poisonPair struct {
	t       *testing.T
	a, b    started
	held    int // objects of a
	errors  uint64
	failing map[string]bool // origins, at a time
}

// poisonPeers starts pairs of peers, one for each mode, which share the places of their mode.
func poisonPeers(t *testing.T, places []*place) *poisonCache {
	t.Helper()
	pairs := make(map[string]*poisonPair)
	for _, p := range places {
		if pairs[p.mode] == nil {
			pairs[p.mode] = newPoisonPair(t, p.mode, slices.DeleteFunc(slices.Clone(places), func(other *place) bool { return other.mode != p.mode }))
		}
	}
	return &poisonCache{
		name:    "peer",
		addr:    func(p *place, _ bool) string { return pairs[p.mode].a.listen },
		sibling: func(p *place) string { return pairs[p.mode].b.listen },
		settle: func() {
			for _, pair := range pairs {
				pair.settle()
			}
		},
		errors: func() string {
			var all []string
			for _, pair := range pairs {
				if e := pair.originErrors(); e != "" {
					all = append(all, e)
				}
			}
			return strings.Join(all, "; ")
		},
	}
}

func newPoisonPair(t *testing.T, mode string, places []*place) *poisonPair {
	t.Helper()
	var file strings.Builder
	file.WriteString("default-ttl: 1h\n")
	switch mode {
	case alone:
		fmt.Fprintf(&file, "origin: http://%s\n", places[0].relay.addr)
	case trusted:
		file.WriteString("trusted-proxies: 127.0.0.1\n")
		fallthrough
	default:
		file.WriteString("sites:\n")
		for _, p := range places {
			fmt.Fprintf(&file, "  - hosts: %s\n    origins: http://%s\n", p.name, p.relay.addr)
		}
	}
	file.WriteString("rules:\n  - path: [/account*, /app.cgi/account*]\n    bypass: true\n")
	if mode == trusted { // these change nothing that clients can tell apart
		file.WriteString("  - path: /*\n    rewrite: /*\n    request-header: X-Cluster poison\n    response-header: -X-Cluster\n  - status: 5xx\n    failover: true\n")
	}
	if mode == bySites {
		file.WriteString(`  - site: "*-unstated.test"
    path: [/static/*, /app.cgi/static/*]
    ttl: 1h
  - site: "*-unstated.test"
    path: "*.css"
    ttl: 1h
  - site: "*-unstated.test"
    status: [4xx, 5xx]
    ttl: 30s
`)
	}
	more := []string{"--config", write(t, "peer.yaml", file.String()), "--publish", "20ms", "--store-size", "2GiB", "--memory-size", "16MiB",
		"--sibling-compare", "0", "--objects", "100000", "--log-level", "error"} // --sibling-compare asks the origin again
	p := &poisonPair{t: t, held: -1, failing: make(map[string]bool)}
	p.a = inProcess(t, local(t, "a", more...))
	p.b = inProcess(t, local(t, "b", append(more, "--join", p.a.gossip)...))
	return p
}

func (p *poisonPair) status(of started) (s admin.Status) {
	eventually(p.t, time.Minute, "a status", func() bool {
		var err error
		s, err = admin.Client(of.admin).Status(p.t.Context())
		return err == nil
	})
	return s
}

// settle waits until the sibling knows what the peer holds.
func (p *poisonPair) settle() {
	eventually(p.t, 5*time.Minute, "the sibling knows what the peer holds", func() bool {
		s := p.status(p.a)
		stable := s.Digest.Keys == p.held && s.Digest.Published == uint64(s.Digest.Keys)
		p.held = s.Digest.Keys
		return stable && slices.ContainsFunc(p.status(p.b).Members, func(m admin.Member) bool {
			return m.State == "alive" && m.Current && m.Keys == uint64(s.Digest.Keys)
		})
	})
}

// originErrors says what the peers have counted against origins since the last call; "" = nothing.
func (p *poisonPair) originErrors() string {
	var list []string
	now := uint64(0)
	for _, of := range []started{p.a, p.b} {
		s := p.status(of)
		now += s.Traffic.OriginErrors
		for _, o := range s.Origins {
			if id := fmt.Sprint(o.Host, o.Since, o.Requests); !p.failing[id] {
				p.failing[id] = true
				list = append(list, o.Host+" "+o.Reason)
			}
		}
	}
	grown := now - p.errors
	p.errors = now
	if grown == 0 && len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%d more requests to origins without an answer, failing origins: %s", grown, strings.Join(list, "; "))
}
