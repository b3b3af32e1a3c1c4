//go:build unix

package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/mutation"
)

var (
	mutations    = flag.Int("mutations", 0, "send so many mutated requests before plain ones, and fail where nginx, lighttpd or python3 is not installed; 0: a few hundred")
	mutationSeed = flag.Uint64("mutation-seed", 1, "of the mutated requests")
	mutationFrom = flag.Int("mutation-from", 0, "number of the first mutated request of the seed")
	mutationFor  = flag.Duration("mutation-for", 0, "go on with further mutated requests for so long")
)

var discarded = log.New(io.Discard, "", 0)

// TestMutatedRequests looks for requests by which one client decides what others get. Each mutated
// request goes to a peer. Then other clients send plain ones there and to its sibling, and must get
// what the origin answers them. No request may make a peer believe that an origin fails.
func TestMutatedRequests(t *testing.T) {
	p := &poisoning{places: poisonPlaces(t, *mutations > 0, true), again: "-run 'MutatedRequests$'"}
	p.cache = poisonPeers(t, p.places)
	began := time.Now()
	p.send(t)
	t.Logf("%d mutated requests, of which %d reached an origin, in %v; %d findings", p.tried, p.reached, time.Since(began).Round(time.Second), len(p.found))
	if p.tried >= 100 && 2*p.reached < p.tried { // not where one is repeated
		t.Errorf("of %d mutated requests only %d reached an origin: most are refused, and nothing is compared", p.tried, p.reached)
	}
	if report := p.report(); report != "" {
		t.Error(report)
	}
}

// A poisoning sends mutated requests to a cache, and plain ones afterwards.
type poisoning struct {
	places []*place
	cache  *poisonCache
	again  string // the flags of the test
	marks  atomic.Int64

	tried, reached int
	found          []finding
}

// A poisonCache is a cache under test, before all places.
type poisonCache struct {
	name    string
	addr    func(p *place, h2 bool) string // "" = it does not speak HTTP/2
	sibling func(p *place) string          // nil = none
	settle  func()                         // waits until the sibling knows what the cache holds
	own     []string                       // fields of answers that it adds or replaces
	errors  func() string                  // of origins, by what the cache counts: "" = none since the last call; nil = unknown
}

// A finding is something that a mutated request changed for others.
type finding struct {
	a      *attempt
	where  string // the peer, its sibling, or the origin as the peer sees it
	what   string // in a word: a status, the body, a field
	detail string
	raw    *wireRequest
}

// A batch is so large that waiting for digests costs little, and so small that failures are near
// their cause.
const poisonBatch = 200

// send sends the mutations that the flags ask for, and notes what they change.
func (p *poisoning) send(t *testing.T) {
	var plain []*attempt
	for _, place := range p.places {
		for _, base := range slices.Compact(place.bases()) {
			plain = append(plain, &attempt{&mutation.Attempt{Place: place.mutable(), Base: base}, -1, place})
		}
	}
	if found := p.batch(plain); len(found) > 0 {
		t.Fatalf("without any mutation, %d of %d answers differ: the first at %s%s, %s %s: %s", len(found), len(plain), found[0].a.place.name, found[0].a.Base, found[0].where, found[0].what, found[0].detail)
	}
	p.tried, p.reached = 0, 0
	few := 300
	if testing.Short() { // with the race detector
		few = 100
	}
	began, count := time.Now(), cmp.Or(*mutations, few)
	for n := *mutationFrom; n < *mutationFrom+count || time.Since(began) < *mutationFor; n += poisonBatch {
		var attempts []*attempt
		for i := n; i < n+poisonBatch && (i < *mutationFrom+count || *mutationFor > 0); i++ {
			attempts = append(attempts, newAttempt(*mutationSeed, i, p.places))
		}
		found := p.batch(attempts)
		tried, reached := p.tried, p.reached
		p.found = append(p.found, p.simpler(found)...)
		p.tried, p.reached = tried, reached
		if *mutationFor == 0 && len(attempts) < poisonBatch {
			break
		}
	}
}

// batch sends mutated requests, waits until siblings know what came of them, and sends plain ones.
func (p *poisoning) batch(attempts []*attempt) (found []finding) {
	raw, answers := make([]*wireRequest, len(attempts)), make([]wireAnswer, len(attempts))
	all := func(f func(i int)) {
		var workers sync.WaitGroup
		var next atomic.Int64
		for range 8 {
			workers.Go(func() {
				for i := int(next.Add(1)) - 1; i < len(attempts); i = int(next.Add(1)) - 1 {
					f(i)
				}
			})
		}
		workers.Wait()
	}
	for i, a := range attempts {
		raw[i] = a.request(p.mark())
		raw[i].H2 = a.H2 && p.cache.addr(a.place, true) != ""
	}
	all(func(i int) { answers[i] = raw[i].exchange(p.cache.addr(attempts[i].place, raw[i].H2)) })
	for _, a := range attempts { // before plain ones get there
		p.tried++
		if a.place.relay.saw(a.Mark) {
			p.reached++
		}
	}
	p.cache.settle()
	results := make([][]finding, len(attempts))
	all(func(i int) {
		a := attempts[i]
		if s := answers[i].status; p.cache.errors != nil && s >= 502 && s <= 504 && !(s == 504 && bytes.Contains(raw[i].Bytes(), []byte("only-if-cached"))) {
			results[i] = append(results[i], finding{a, "the origin", fmt.Sprint("status ", s), fmt.Sprintf("answered %d: %.300q %v", s, answers[i].body, answers[i].header), raw[i]})
		}
		results[i] = append(results[i], p.compare(a, raw[i])...)
	})
	for i := range attempts {
		found = append(found, results[i]...)
	}
	if p.cache.errors == nil {
		return found
	}
	e := p.cache.errors()
	told := false
	for i := range found {
		if found[i].where == "the origin" {
			told = true
			found[i].detail += "; of this batch " + e
		}
	}
	if e != "" && !told {
		found = append(found, p.blame(attempts, raw, e))
	}
	return found
}

// blame finds the attempt after which an origin counts as failing though no client was told, by
// halving the batch.
func (p *poisoning) blame(attempts []*attempt, raw []*wireRequest, errors string) finding {
	defer func(tried, reached int) { p.tried, p.reached = tried, reached }(p.tried, p.reached)
	if len(attempts) > 1 {
		for part := range slices.Chunk(attempts, (len(attempts)+1)/2) {
			for _, f := range p.batch(part) {
				if f.where == "the origin" {
					return f
				}
			}
		}
	}
	return finding{attempts[0], "the origin", "counted as failing", fmt.Sprintf("after one of %d requests from this one on: %s", len(attempts), errors), raw[0]}
}

func (p *poisoning) mark() string { return fmt.Sprintf("n=%07dz", p.marks.Add(1)) }

// compare sends what other clients ask for after a mutated request.
func (p *poisoning) compare(a *attempt, raw *wireRequest) (found []finding) {
	type asked struct{ where, addr string }
	order := []asked{{"the " + p.cache.name, p.cache.addr(a.place, false)}}
	if p.cache.sibling != nil {
		order = append(order, asked{"its sibling", p.cache.sibling(a.place)})
		if a.n%2 == 1 {
			slices.Reverse(order)
		}
	}
	check := func(v mutation.Victim, want func(addr string) wireAnswer) {
		for _, at := range order {
			if what, detail := plain(v, a.place).exchange(at.addr).difference(want(at.addr), p.cache.own); what != "" {
				found = append(found, finding{a, at.where, what, fmt.Sprintf("%s: %s", plain(v, a.place).Target(), detail), raw})
			}
		}
	}
	for _, v := range a.Victims {
		r := plain(v, a.place)
		if a.place.mode == alone {
			r.Set("Host", a.place.relay.addr)
		}
		want := r.exchange(a.place.relay.origin)
		if to := want.header.Get("Location"); a.place.mode == alone && to != "" { // a redirect to the origin is one to the peer
			want.header.Set("Location", strings.TrimPrefix(to, "http://"+a.place.relay.addr))
		}
		check(v, func(string) wireAnswer { return want })
	}
	for _, v := range a.Controls {
		if len(found) > 0 {
			break
		}
		check(v, func(addr string) wireAnswer {
			fresh := p.mark()
			want := plain(mutation.Victim{Path: v.Path, Query: strings.Replace(v.Query, a.Mark, fresh, 1)}, a.place).exchange(addr)
			want.body = strings.ReplaceAll(want.body, fresh, a.Mark)
			want.header = maps.Clone(want.header)
			for name, lines := range want.header {
				want.header[name] = []string{strings.ReplaceAll(strings.Join(lines, ", "), fresh, a.Mark)}
			}
			return want
		})
	}
	return found
}

// simpler tries each mutation of a finding alone, and attributes the finding to the first that does
// the same.
func (p *poisoning) simpler(found []finding) []finding {
	var alone []*attempt
	for _, f := range found {
		for i := range f.a.Parts {
			if len(f.a.Parts) > 1 {
				one := *f.a.Attempt
				one.Parts = f.a.Parts[i : i+1]
				alone = append(alone, &attempt{&one, f.a.n, f.a.place})
			}
		}
	}
	if len(alone) == 0 {
		return found
	}
	again := p.batch(alone)
	for i, f := range found {
		for _, s := range again {
			if s.a.n == f.a.n && s.where == f.where && s.what == f.what {
				found[i] = s
				break
			}
		}
	}
	return found
}

// report says what was found, each kind of it once; "" = nothing.
func (p *poisoning) report() string {
	type row struct {
		first finding
		count int
	}
	rows := make(map[string]*row)
	var order []string
	for _, f := range p.found {
		name := f.name()
		if rows[name] == nil {
			rows[name] = &row{first: f}
			order = append(order, name)
		}
		rows[name].count++
	}
	if len(order) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d times a mutated request changed something for others. The number of the first of each kind:\n", len(p.found))
	for _, name := range order {
		fmt.Fprintf(&out, "%6d  %4d times  %s\n", rows[name].first.a.n, rows[name].count, name)
	}
	again := p.again
	if *mutations > 0 { // with the same origins
		again += " -mutations 1"
	}
	for _, name := range order {
		f := rows[name].first
		if here, ok := strings.CutSuffix(name, atSibling); ok && rows[here] != nil && rows[here].first.a.n == f.a.n {
			continue
		}
		fmt.Fprintf(&out, "\n%s\n    mutation %d (%s) at %s, %s: %s\n    by %s\n    again: go test ./cmd/peer %s -mutation-seed %d -mutation-from %d\n",
			name, f.a.n, f.a.Kinds(), f.a.place.name, f.where, f.detail, f.raw, again, *mutationSeed, f.a.n)
	}
	return out.String()
}

// knownDefects are those that mutations have found, each with how it shows.
var knownDefects = []struct {
	name string
	is   func(f finding) bool
}{
	{"an error to a range is stored", func(f finding) bool {
		return f.has("range") && strings.HasPrefix(f.what, "status 416") && !strings.Contains(f.a.Base, "/ranged")
	}},
	{"an origin's answer to any range is stored", func(f finding) bool { return f.has("range") && strings.Contains(f.a.Base, "/ranged") }},
	{"an error to large fields is stored", func(f finding) bool { return f.has("oversize") && strings.HasPrefix(f.what, "status 4") }},
	{"a field with underscores is not part of the key", func(f finding) bool { return f.has("underscore") && f.where != "the origin" }},
	{"a field that frameworks read is not part of the key", func(f finding) bool { return f.has("claim") && f.where != "the origin" }},
	{"a private page is stored under another spelling", func(f finding) bool {
		return f.has("spelling") && strings.Contains(f.a.Base, "/account") && strings.Contains(f.detail, "hello victim")
	}},
	{"an error to Expect is stored", func(f finding) bool {
		return (f.has("expect") || f.has("doubled")) && strings.HasPrefix(f.what, "status 417")
	}},
	{"a method that is no token is charged to the origin", func(f finding) bool { return f.where == "the origin" && f.has("token") }},
	{"an invalid Vary is stored", func(f finding) bool { return strings.HasSuffix(f.a.Base, "/badvary") && f.what == "body" }},
	{"queries that the origin tells apart share a key", func(f finding) bool { return f.has("query") && f.where != "the origin" }},
}

func (f finding) has(kind string) bool {
	return slices.ContainsFunc(f.a.Parts, func(p mutation.Part) bool { return p.Kind == kind })
}

// name says what a finding is: one that is known, or its mutations and what they change.
func (f finding) name() string {
	where := ""
	if f.where == "its sibling" {
		where = atSibling
	}
	if f.a.place.mode != bySites {
		where += ", with --origin or --trusted-proxies"
	}
	for _, k := range knownDefects {
		if k.is(f) {
			if len(f.a.Parts) == 1 && f.has("claim") {
				where = ": " + strings.ToLower(f.raw.Fields[len(f.raw.Fields)-1][0]) + where
			}
			return k.name + where
		}
	}
	if f.where == "the origin" {
		where = ", and the origin is blamed"
	}
	return f.a.Kinds() + ": " + f.what + where
}

const atSibling = ", at the sibling"
