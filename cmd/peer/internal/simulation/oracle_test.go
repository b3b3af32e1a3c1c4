package simulation

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A violation is a broken promise.
type violation struct {
	kind, text string
}

func (w *world) fail(kind string, r *result, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if r != nil {
		text += fmt.Sprintf("\n\trequest %+v\n\t%.3f to %.3f s, status %d, %d bytes, complete %v, version %v, error %v, Cache-Status %q Age %q\n\ttroubles %v",
			r.request, r.start.Sub(w.began).Seconds(), r.end.Sub(w.began).Seconds(), r.status, r.bytes, r.complete, r.version, r.err,
			r.header["Cache-Status"], r.header["Age"], w.describe(w.troubled(r)))
	}
	w.mu.Lock()
	w.wrong = append(w.wrong, violation{kind, text})
	w.mu.Unlock()
	w.log("VIOLATION %s: %s", kind, text)
}

func (w *world) describe(list []trouble) (s []string) {
	for _, t := range list {
		s = append(s, fmt.Sprintf("%s node=%d url=%d %.3f..%.3f", t.kind, t.node, t.url, t.from.Sub(w.began).Seconds(), min(t.to.Sub(w.began).Seconds(), 1e6)))
	}
	return s
}

// A barrier is a moment of a write, purge or reload at a node: from then on the node must not answer with
// older versions of the URL.
type barrier struct {
	node, life, url, number int
	variant                 int // 1 + the only one that it is about; 0 = all
	from                    time.Time
	purged                  time.Time // when the purge began; zero = it was a write
	soft, tag               bool
	alone                   bool // it was of this peer alone: siblings keep their copies
}

func (w *world) barrier(b barrier) {
	if b.life%2 == 0 {
		return // nobody knows which node it was
	}
	w.mu.Lock()
	w.barriers = append(w.barriers, b)
	w.mu.Unlock()
}

// apart are the faults because of which a write may be unknown at some peer when it is answered.
var apart = []string{"loss", "partition", "crawl", "reset", "freeze", "kill", "power-cut", "restart", "empty", "saved-digests", "noise", "memory"}

// barrierEverywhere adds the barrier of a write for all peers, if it could reach them.
func (w *world) barrierEverywhere(r *result) {
	if w.s.Limit > 0 {
		return
	}
	for _, f := range w.s.Faults {
		if slices.Contains(apart, f.Kind) && w.at(f.At).Before(r.end) && r.start.Before(w.at(f.At+f.For).Add(15*time.Second)) {
			return
		}
	}
	w.sometimes("a write bars all peers")
	for i, p := range w.peers {
		w.barrier(barrier{node: i, life: p.lives(), url: r.URL, number: r.version.number, from: r.end})
	}
}

const (
	quick     = 5 * time.Second  // in which a request ends that nothing is in the way of
	overtakes = 10 * time.Second // in which one ends that comes to an answer which stalled before it
	goesOn    = 20 * time.Second // in which one ends whose answer stalls, if the rest can be asked for
	lingers   = 75 * time.Second // in which one ends whatever the origin does with its answer, each time
	rounding  = 3 * time.Second  // by which ages may be wrong: whole seconds, at each cache on the way
)

// judge checks a result against the promises.
func (w *world) judge(r result) {
	status := strings.Join(r.header["Cache-Status"], ", ")
	w.log("p%d %s %d.%d: %d %v %d %v %q", r.Node, r.Kind, r.URL, r.Sort, r.status, r.version, r.bytes, r.complete, status)
	if strings.Contains(status, "detail=arriving") {
		w.mu.Lock()
		w.arriving[[2]int{r.Node, r.URL}] = r.end
		w.mu.Unlock()
	}
	troubles := w.troubled(&r)
	took := r.end.Sub(r.start)
	var whole, host bool // the trouble is the whole origin's, the peer's own
	spoilt := 0          // or that of so many answers
	for _, t := range troubles {
		switch {
		case t.url != anyone:
			spoilt++
		case slices.Contains([]string{"freeze", "kill", "power-cut", "restart", "empty", "saved-digests"}, t.kind):
			host = true
		default:
			whole = true
		}
	}
	once, superseded, lied := spoilt > 0, w.superseded(&r), w.lied(&r)
	own := 30 * time.Second // what a client takes by itself
	atLeisure := r.Kind == "slow" || r.Kind == "window"
	switch {
	case r.Kind == "post-stop" && took >= patience && !host:
		w.fail("held", &r, "a client that stopped sending was waited for for %v", took)
	case r.gone || r.Kind == "post-stop" || r.Kind == "churn":
	case took >= patience && !host:
		w.fail("hung", &r, "no end after %v", took)
	case took > own+lingers*time.Duration(max(spoilt, 1)) && !whole && !host && !w.crawls(&r):
		w.fail("slow", &r, "no end before %v", took)
	case took > overtakes && r.Kind == "get" && len(troubles) == 1 && troubles[0].kind == "stall" && r.start.Sub(troubles[0].from) > 3*time.Second:
		w.fail("slow", &r, "no end before %v, of a request that came when the answer had stalled for long", took)
	case took > goesOn && !atLeisure && len(troubles) == 1 && troubles[0].kind == "stall" && r.complete && pageOf(r.URL).rule.tag && w.resumable(&r) && !w.unkept(&r) &&
		w.origin.version(pageOf(r.URL), r.start) == r.version.number: // and not one with which it had to begin again
		w.fail("slow", &r, "no end before %v, of an answer whose rest could be asked for", took)
	case took > quick && !atLeisure && troubles == nil && !superseded && !w.crawls(&r) && !w.unkept(&r) && !(lied && took < 2*quick): // at 128 KiB/s
		w.fail("slow", &r, "no end before %v", took)
	}
	if r.bad != "" && !lied {
		w.fail("body", &r, "%s", r.bad)
	}
	w.judgeConnection(r.header, &r, "an answer")
	w.judgePrivate(&r)
	if r.Kind == "odd" || r.Kind == "mutated" {
		w.sometimes(map[string]string{"odd": "an odd request", "mutated": "a mutated request"}[r.Kind])
		return
	}
	if r.Kind == "hop" && r.status == http.StatusOK {
		w.sometimes("a client names fields of its connection")
	}
	w.judgeOdd(&r)
	switch {
	case r.gone || r.Kind == "post-stop":
	case (r.status == 0 || r.status == http.StatusServiceUnavailable) && w.refused(&r):
		w.sometimes("a request is refused for want of memory")
	case !r.complete && r.err != nil && atLeisure && w.refused(&r):
		w.sometimes("a slow client gives way for want of memory")
	case r.status == 0:
		if !host && !errors.Is(r.err, os.ErrDeadlineExceeded) {
			w.fail("error", &r, "no answer: %v", r.err)
		}
	case r.status >= 500 && !(r.Kind == "only-if-cached" && r.status == http.StatusGatewayTimeout):
		if troubles == nil {
			w.fail("error", &r, "status %d", r.status)
		}
	case !r.complete && r.err != nil && !errors.Is(r.err, os.ErrDeadlineExceeded):
		// What only-if-cached asks for is to come from the store, and a bad disk may end it. Or it is arriving, and a liar may
		// end it, after its time too: for this request nothing is asked of others.
		alone := r.Kind == "only-if-cached" && slices.ContainsFunc(w.s.Faults, func(f fault) bool {
			return f.Node == r.Node && spoils(f.Kind) || f.Kind == "liar" && strings.Contains(status, "detail=arriving")
		})
		// So is what the disk does not take, for the client that is there then.
		alone = alone || w.unkept(&r) || once && slices.ContainsFunc(w.s.Faults, func(f fault) bool {
			return f.Node == r.Node && slices.Contains([]string{"disk-full", "disk-any", "disk-write", "disk-room"}, f.Kind)
		})
		if !whole && !host && !superseded && !alone && !lied && !(once && !w.resumable(&r)) {
			w.fail("cut", &r, "an answer was cut: %v", r.err)
		}
	}
	w.cover(&r, status)
	if r.complete && r.Kind == "post" && r.status == http.StatusOK {
		w.barrier(barrier{node: r.Node, life: r.life, url: r.URL, number: r.version.number, from: r.end})
		w.barrierEverywhere(&r)
	}
	// Without a tag a copy of the same second may be the same.
	if r.complete && r.Kind == "no-cache" && r.status == http.StatusOK && pageOf(r.URL).rule.tag && !lied && strings.HasSuffix(status, "stored") {
		w.sometimes("a reload is stored")
		w.barrier(barrier{node: r.Node, life: r.life, url: r.URL, number: r.version.number, variant: 1 + r.version.sort, from: r.end, soft: true})
	}
	if (r.status == http.StatusOK || r.status == http.StatusPartialContent || r.status == http.StatusNotModified) && r.Kind != "post" && r.Kind != "post-stop" {
		if w.judgeLie(&r); !lied {
			w.judgeVersion(&r, status, whole)
		}
	}
}

// spoils reports whether a fault makes stored bodies unreadable.
func spoils(kind string) bool {
	return slices.Contains([]string{"rot", "truncate", "remove", "disk-read", "disk-flip", "disk-any"}, kind)
}

// superseded reports whether no source may have the rest of an answer that broke off: the origin
// has another version by now, or it sent a false length with this one, so that it has a longer one.
func (w *world) superseded(r *result) bool {
	if r.complete || r.gone || r.status == 0 {
		return false
	}
	w.origin.mu.Lock()
	lied := slices.ContainsFunc(w.origin.spoilt, func(t trouble) bool { return t.kind == "lie" && t.url == r.URL && t.from.Before(r.end) })
	w.origin.mu.Unlock()
	return lied || w.origin.version(pageOf(r.URL), r.end) != r.version.number
}

// crawls reports whether an answer of a sibling may be as slow as it is: the origin
// has another version by now, and no other source has the rest; or the sibling was receiving it still, so that its
// origin may be what is slow. Where an answer has several slices, its header speaks of the first; a later one may be
// what another client waits for.
func (w *world) crawls(r *result) bool {
	w.mu.Lock()
	arriving := r.start.Before(w.arriving[[2]int{r.Node, r.URL}])
	w.mu.Unlock()
	return slices.ContainsFunc(w.s.Faults, func(f fault) bool { return f.Kind == "crawl" }) &&
		(w.origin.version(pageOf(r.URL), r.end) != r.version.number || arriving)
}

// cacheable reports whether an answer goes through the store, so that another source can be compared
// with the bytes sent. An answer is not stored if its length is too large, or if it is stale by the
// clock of a peer whose clock is ahead.
func (w *world) cacheable(r *result) bool {
	p := pageOf(r.URL)
	lifetime := p.rule.lifetime
	// What goes to one client alone, such as a private answer or a range that is passed on, is not kept: without a validator
	// there is nothing with which another source could be compared.
	all := r.header["Cache-Status"]
	status := strings.Join(all[max(0, len(all)-1):], "") // of the peer that was asked, not of its sibling
	if !strings.Contains(status, "stored") && !strings.Contains(status, "collapsed") && !strings.Contains(status, "hit") {
		return false
	}
	return r.Kind == "part" || (r.Kind == "get" || r.Kind == "range") && lifetime > 0 && (p.chunked || p.size <= w.s.Store/4) && !slices.ContainsFunc(w.s.Faults, func(f fault) bool {
		return f.Kind == "clock" && f.Node == r.Node && time.Duration(f.N)*time.Millisecond+rounding > lifetime &&
			w.at(f.At).Before(r.end) && w.at(f.At+f.For).After(r.start)
	})
}

// resumable reports whether an answer that the origin broke off could have been finished:
// the origin still has the same version, and does not break off each time.
func (w *world) resumable(r *result) bool {
	p := pageOf(r.URL)
	for _, t := range w.troubled(r) {
		if t.kind == "lie" || t.kind == "stubborn" {
			return false
		}
	}
	return w.origin.version(p, time.Now()) == r.version.number && (p.rule.tag || w.cacheable(r))
}

// unkept reports whether an answer is for one client alone, as its peer does not keep it: it has no other source, so it is as
// fast as the one that it has, and ends with that.
func (w *world) unkept(r *result) bool {
	all := r.header["Cache-Status"]
	if len(all) == 0 {
		return false
	}
	said := all[len(all)-1]
	return strings.Contains(said, "fwd=") && !slices.ContainsFunc([]string{"stored", "collapsed", "fwd-status=304"}, func(of string) bool { return strings.Contains(said, of) })
}

// judgeVersion checks whether an answer's version may still be served.
func (w *world) judgeVersion(r *result, status string, whole bool) {
	p := pageOf(r.URL)
	if r.version.url != r.URL {
		w.fail("body", r, "an answer of another URL")
		return
	}
	coded := w.s.Coding && p.rule.vary == "Accept-Encoding" // the origin is asked for what is not coded
	if want := r.Sort % 3; p.rule.vary != "" && !coded && r.Kind != "conditional" && r.version.sort != want {
		w.fail("body", r, "variant %d for a client that selects %d", r.version.sort, want)
	}
	w.origin.mu.Lock()
	given := w.origin.given[r.version]
	w.origin.mu.Unlock()
	allowed := p.rule.lifetime + p.rule.stale + rounding + w.putBack()
	if r.Kind == "no-cache" {
		allowed = rounding
	}
	if strings.Contains(status, "detail=stale-if-error") {
		allowed += p.rule.onError
		if len(w.troubled(r)) == 0 {
			w.fail("stale", r, "stale for an error, without one")
		}
	}
	if old := r.start.Sub(given); old > allowed {
		w.fail("stale", r, "the origin gave that version last %v before the request; %v are allowed", old, allowed)
	}
	frozen := slices.ContainsFunc(w.troubled(r), func(t trouble) bool { return t.kind == "freeze" }) // with an answer on its way
	if age, err := strconv.Atoi(r.header.Get("Age")); err == nil && !frozen && time.Duration(age)*time.Second+rounding+w.putBack() < r.answered.Sub(given) {
		w.fail("age", r, "the origin gave that version last %v before the header came", r.answered.Sub(given))
	}
	w.judgeBarriers(r, strings.Contains(status, "detail=stale-if-error") || strings.Contains(status, "ttl=-"))
}

// putBack is by how much a peer may underestimate the age of a copy after a restart, because the
// wall clock was set back meanwhile.
func (w *world) putBack() time.Duration {
	ahead, behind := int64(0), int64(0)
	for _, f := range w.s.Faults {
		if f.Kind == "clock" {
			ahead, behind = max(ahead, f.N), min(behind, f.N)
		}
	}
	for _, p := range w.peers {
		if p.lives() > 1 {
			return time.Duration(ahead-behind) * time.Millisecond
		}
	}
	return 0
}

// cover notes the kind of an answer.
func (w *world) cover(r *result, status string) {
	for _, word := range []string{"detail=sibling", "collapsed", "stale-if-error", "fwd=stale", "fwd=uri-miss", "ttl=-", "fwd=partial", "fwd=vary-miss"} {
		if strings.Contains(status, word) {
			w.sometimes("Cache-Status " + word)
		}
	}
	if strings.HasPrefix(status, fmt.Sprintf("p%d; hit", r.Node)) {
		w.sometimes("Cache-Status hit")
	}
	if r.status != 0 {
		w.sometimes(fmt.Sprintf("status %d", r.status))
	}
	w.coverPlaces(r, status)
}

// rest waits until there is no more activity, and compares every digest and its replicas with the
// store. An arriving object is in the digest already, and a body without progress may be arriving
// for a minute if no request waits for it.
func (w *world) rest() {
	pause(40 * time.Second)
	for again := range 4 {
		digests, writing, small := w.digests(), w.writing(), w.small()
		if len(digests)+len(writing)+len(small) == 0 {
			break
		}
		if again == 3 {
			for kind, wrong := range map[string][]string{"digest": digests, "leak": writing, "room": small} {
				if len(wrong) > 0 {
					w.fail(kind, nil, "%s", strings.Join(wrong, "\n\t"))
				}
			}
		}
		pause(10 * time.Second) // objects that expire are unlisted meanwhile, and that is published
	}
	for _, p := range w.peers {
		n := p.now()
		if n == nil {
			continue
		}
		w.judgeMemory(p, "at rest", "requests")
		s := n.Status()
		if s.Store.Bytes > s.Store.MaxBytes {
			w.fail("leak", nil, "p%d: the store has %d bytes of %d", p.index, s.Store.Bytes, s.Store.MaxBytes)
		}
		for what, n := range map[string]uint64{"evictions": s.Store.Evictions, "corrupt": s.Store.Corrupt, "write errors": s.Store.WriteErrors,
			"reloaded": s.Store.Reloaded, "revalidations": s.Traffic.Revalidations, "sibling errors": s.Traffic.SiblingErrors, "background": s.Traffic.Background} {
			if n > 0 {
				w.sometimes("counter " + what)
			}
		}
	}
}

// writing returns the peers that are still storing an object.
func (w *world) writing() (wrong []string) {
	for _, p := range w.peers {
		if n := p.now(); n != nil {
			if bytes := n.Status().Store.WritingBytes; bytes != 0 {
				wrong = append(wrong, fmt.Sprintf("p%d: %d bytes are being written at rest", p.index, bytes))
			}
		}
	}
	return wrong
}

// digests returns what is wrong with the digests of all peers and their replicas.
func (w *world) digests() (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, p := range w.peers {
		n := p.now()
		if n == nil {
			continue
		}
		s := n.Status()
		own, err := n.Digest("")
		f, err2 := digest.DecodeFilter(own, digest.Limits{Profile: digest.HTTP})
		if err := errors.Join(err, err2); err != nil {
			bad("p%d: %v", p.index, err)
			continue
		}
		if w.s.Objects > 1000 { // too many to be asked for one by one
			if s.Digest.Keys != s.Store.Listed {
				bad("p%d: the store lists %d objects, the digest %d", p.index, s.Store.Listed, s.Digest.Keys)
			}
			continue
		}
		listed := w.listed(p)
		for _, id := range listed {
			if !f.MayContain(digest.KeyOfString(digest.SeedFrom(w.secret()), id)) {
				bad("p%d: %q is listed and not in the digest", p.index, id)
			}
		}
		// A response that varies as not every cache guesses has another key, for those that do not
		// know how. What is published has the number of keys as of the last change of a position.
		keys := len(listed)
		for _, id := range listed {
			if _, fields := rfc9111.SplitIdentity(id); len(fields) > 0 && !rfc9111.AlwaysGuessed(fields) && !rfc9111.IsSlice(id) {
				keys++
			}
		}
		if more := slices.ContainsFunc(w.s.Requests, func(r request) bool { return r.Kind == "mutated" || r.Kind == "churn" }); more {
			if s.Digest.Keys < s.Store.Listed { // what they stored besides is not asked for one by one
				bad("p%d: the store lists %d objects, the digest has %d keys", p.index, s.Store.Listed, s.Digest.Keys)
			}
		} else if s.Digest.Keys != keys || s.Store.Listed != len(listed) {
			bad("p%d: %d objects are listed, with %d keys; the store says %d, the digest has %d keys", p.index, len(listed), keys, s.Store.Listed, s.Digest.Keys)
		}
		for _, q := range w.peers {
			if m := q.now(); q != p && m != nil {
				if theirs, err := m.Digest(s.Name); err != nil || !slices.Equal(theirs, own) {
					bad("p%d has not p%d's digest: %d bytes, want %d, %v", q.index, p.index, len(theirs), len(own), err)
				}
			}
		}
	}
	return wrong
}

// listed returns the identities that a node lists. It looks up every URL and variant.
func (w *world) listed(p *peer) (ids []string) {
	n := p.now()
	for _, u := range w.urls() {
		for sort := range 3 {
			h := http.Header{}
			if sort > 0 {
				h = http.Header{"X-Sort": {strings.Repeat("s", sort)}, "Accept-Encoding": {w.accepts(sort)}}
			}
			e, err := n.Why(admin.WhyRequest{URL: w.urlOf(u), Header: h})
			if err != nil {
				w.fail("digest", nil, "p%d: %v", p.index, err)
			}
			for _, s := range e.Stored {
				if s.Listed && !slices.Contains(ids, s.Identity) {
					ids = append(ids, s.Identity)
				}
			}
		}
	}
	return ids
}

// leftovers looks for sockets, and open files after all nodes have ended. Goroutines
// left behind would keep the bubble from ending.
func (w *world) leftovers() {
	for _, p := range w.peers {
		w.judgeMemory(p, "at the end", "connections", "requests", "admin")
		if n := p.host.Open(); n > 0 {
			w.fail("leak", nil, "p%d left %d sockets open", p.index, n)
		}
		if flips := p.flips.Load(); flips > 10 && p.counted.Load() == 0 {
			w.fail("undetected", nil, "p%d read %d blocks with a bit turned, and counted no object as corrupt", p.index, flips)
		}
	}
}
