package simulation

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

const liarIP = "10.0.0.9"

// A liar is a member that has the secret and nothing that it advertises.
type liar struct {
	w    *world
	f    fault
	node *gossip.Node

	mu  sync.Mutex
	rng *rand.Rand
}

// A lie is an answer of the liar that is not the origin's, in a way that no peer can see by itself.
type lie struct {
	number int
	at     time.Time
}

// The ways in which the liar answers. Those up to honest are true, unusable, or wrong in a way that a
// peer must notice: no client may see a difference.
const (
	falseHit = iota
	silent
	crawling
	breaksOff
	spoiltBody
	brokenSums
	notShared
	ofConnection

	honest = iota // the number of those above
)

const (
	ownBody      = honest + iota
	validated    // another body with the origin's validators
	anothersPage // somebody else's object
	olderVersion // a removal is withheld
	ways
)

// liar joins a member that lies for a time.
func (w *world) liar(f fault) {
	host := w.net.Host(liarIP)
	l := &liar{w: w, f: f, rng: rand.New(rand.NewPCG(w.s.Seed, 0x6c6965))}
	claims, err := l.claims()
	if err != nil {
		panic(err)
	}
	cfg := gossip.Config{Name: "m", Bind: liarIP + ":7946", Service: liarIP + ":80", Secret: w.secret(), Holdings: claims, Logger: slog.New(slog.DiscardHandler)}
	cfg.Network = host
	for _, p := range w.peers {
		cfg.Join = append(cfg.Join, p.ip+":7946")
	}
	if l.node, err = gossip.New(cfg); err != nil {
		panic(err)
	}
	listener, err := host.Listen(liarIP + ":80")
	if err != nil {
		panic(err)
	}
	server := &http.Server{Handler: l, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go server.Serve(listener)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(f.For)*time.Millisecond)
	defer cancel()
	if err := l.node.Join(ctx); err == nil {
		w.sometimes("a liar joins")
	}
	for end := time.Now().Add(time.Duration(f.For) * time.Millisecond); time.Now().Before(end); w.wait(2000) {
		select {
		case <-w.over:
			end = time.Now()
		default:
			l.invalidate()
		}
	}
	if f.N%2 == 0 {
		leave, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		l.node.Leave(leave)
		cancel()
	}
	host.Kill()
	l.node.Close()
	server.Close()
}

// claims are a third of the pages, or everything: more keys than the filter has positions. To peers with little
// memory it is a digest that does not fit.
func (l *liar) claims() (*gossip.Holdings, error) {
	if l.f.P > 0.2 || l.w.s.Limit > 0 {
		keys := 20_000
		g := digest.Geometry{Bits: 4096, Hashes: 1, Seed: digest.SeedFrom(l.w.secret())}
		if l.w.s.Limit > 0 {
			g.Bits, keys = 16<<20, 200_000
		}
		all, err := digest.NewSet(g, 1)
		if err != nil {
			return nil, err
		}
		for i := range keys {
			all.Add(digest.KeyOfString(g.Seed, fmt.Sprint(i)))
		}
		return gossip.NewHoldings(all), nil
	}
	h, err := gossip.PlanHoldings(200, 0.01, digest.HTTP, l.w.secret())
	if err != nil {
		return nil, err
	}
	for u := 0; u < l.w.s.URLs; u += 3 {
		h.Add(l.w.identityOf(l.w.s.First + u))
	}
	return h, nil
}

// identityOf is how peers name a page among each other.
func (w *world) identityOf(url int) string {
	if w.s.Sites {
		return "GET " + w.urlOf(url)
	}
	return fmt.Sprintf("GET http://%s:8080/o/%d", originIP, url)
}

func (l *liar) draw(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rng.IntN(n)
}

// invalidate announces now and then a removal for which there is no reason.
func (l *liar) invalidate() {
	if l.draw(3) > 0 {
		return
	}
	url := l.w.s.First + l.draw(l.w.s.URLs)
	t := invalidation.Target{Kind: invalidation.Identity, Name: l.w.identityOf(url)}
	if l.draw(2) == 0 {
		t = invalidation.Target{Kind: invalidation.Tag, Name: sharedTag(url), Soft: l.draw(2) == 0}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l.node.Invalidate(ctx, t)
	l.w.sometimes("a liar invalidates")
}

// ServeHTTP answers a peer.
func (l *liar) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	way := l.draw(honest)
	if l.f.N >= 100 {
		way = l.draw(ways)
	}
	var url int
	if n, _ := fmt.Sscanf(r.URL.Path, "/o/%d", &url); n != 1 {
		switch l.draw(3) { // as the owner of a key
		case 0:
			l.wait(r)
		case 1:
			rw.Header().Set("Summarycache-Fetching", []string{"m", "p0", "nobody"}[l.draw(3)])
			fallthrough
		default:
			rw.WriteHeader(http.StatusNoContent)
		}
		return
	}
	p := pageOf(url)
	now := time.Now()
	v := version{url, l.w.origin.version(p, now), p.sort(r.Header)}
	if way == falseHit || way == silent || p.size == 0 || p.common > 0 { // what all versions begin with may rightly end with another
		if way == silent {
			l.wait(r)
		}
		rw.WriteHeader(http.StatusGatewayTimeout)
		return
	}
	l.w.sometimes("a liar answers")
	l.give(rw, r, p, v, way)
}

func (l *liar) wait(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-time.After(20 * time.Second):
	}
}

// give answers with an object in one of the ways.
func (l *liar) give(rw http.ResponseWriter, r *http.Request, p *page, v version, way int) {
	shown, body := v, v // the version in the header, and that of the body
	if way >= honest {
		number := l.w.lie(p.url)
		switch way {
		case ownBody, validated:
			body.number = 1<<20 + number
			if way == ownBody {
				shown = body
			}
		case anothersPage:
			other := l.w.s.First + (p.url-l.w.s.First+1)%l.w.s.URLs
			p = pageOf(other)
			shown = version{other, l.w.origin.version(p, time.Now()), 0}
			body = shown
		case olderVersion:
			shown.number = max(0, v.number-1)
			body = shown
		}
		rw.Header().Set("X-Lie", fmt.Sprint(number))
	}
	b := make([]byte, p.length(shown))
	body.fill(b, 0)
	h := rw.Header()
	for line := range strings.Lines(p.header(shown, time.Now())) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && name != "Connection" && name != "X-Hop" && name != "Keep-Alive" {
			h.Set(name, value)
		}
	}
	if way < honest { // as if it had just come from the origin
		l.w.origin.mu.Lock()
		l.w.origin.given[v] = time.Now()
		l.w.origin.mu.Unlock()
	} else {
		h.Set("Cache-Control", "max-age=2147483647, stale-while-revalidate=2147483647")
	}
	h.Set("Cache-Status", "m; hit; ttl=2147483647")
	h.Set("Age", "0")
	switch way {
	case notShared:
		h.Set("Cache-Control", []string{"private", "no-store", "no-cache"}[l.draw(3)])
	case ofConnection:
		h.Set("Connection", "X-Hop")
		h.Set("X-Hop", "of this connection")
		h.Set("Keep-Alive", "timeout=50")
	case brokenSums:
		h.Set("Summarycache-Body", []string{"nonsense", "::", ":AAAA:", sumsOf(b) + ";left=-1"}[l.draw(4)])
	case spoiltBody:
		h.Set("Summarycache-Body", sumsOf(b))
		b[l.draw(len(b))] ^= 1 << l.draw(8)
	}
	h.Set("Content-Length", fmt.Sprint(len(b)))
	if r.Method == http.MethodHead {
		return
	}
	switch {
	case way == breaksOff || way >= honest && l.draw(4) == 0:
		rw.Write(b[:l.draw(len(b))])
		panic(http.ErrAbortHandler)
	case way == crawling || way >= honest && l.draw(4) == 0:
		for ; len(b) > 0 && r.Context().Err() == nil; b = b[min(5, len(b)):] {
			if _, err := rw.Write(b[:min(5, len(b))]); err != nil {
				return
			}
			rw.(http.Flusher).Flush()
			time.Sleep(200 * time.Millisecond)
		}
	default:
		rw.Write(b)
	}
}

// sumsOf returns the field with the checksums of a body, by PROTOCOL.md section 13.
func sumsOf(body []byte) string {
	var b []byte
	for ; len(body) > 0; body = body[min(len(body), 65536):] {
		b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(body[:min(len(body), 65536)]))
	}
	return ":" + base64.StdEncoding.EncodeToString(b) + ":"
}

// lie notes a lie about a page, and returns its number.
func (w *world) lie(url int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lies[url] = append(w.lies[url], lie{len(w.lies[url]), time.Now()})
	w.seen["a liar lies"]++
	return len(w.lies[url]) - 1
}

// lied reports whether an answer may be wrong because of a lie: the liar gave it for this page, no
// longer ago than what siblings give may be served, unless the origin fails.
func (w *world) lied(r *result) bool {
	standsIn := strings.Contains(strings.Join(r.header["Cache-Status"], ", "), "stale-if-error")
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lies[r.URL] {
		if !l.at.After(r.end) && (standsIn || r.start.Sub(l.at) <= time.Duration(w.s.Given)*time.Second+rounding) {
			return true
		}
	}
	return false
}

// judgeLie checks what holds of an answer for a page that the liar lied about: a lie from before a hard
// purge is not served after it. Another page in place of this one has the tags of that.
func (w *world) judgeLie(r *result) {
	number := 0
	if _, err := fmt.Sscan(r.header.Get("X-Lie"), &number); err != nil {
		return
	}
	w.sometimes("a client gets a lie")
	w.mu.Lock()
	at, barriers := w.lies[r.URL][number].at, w.barriers
	w.mu.Unlock()
	for _, b := range barriers {
		if b.tag && r.version.url != r.URL {
			continue
		}
		if b.alone && strings.Contains(strings.Join(r.header["Cache-Status"], ","), "detail=sibling") {
			continue // the origin has confirmed the copy of a sibling that was not purged, lie or not
		}
		if b.node == r.Node && b.life == r.life && b.url == r.URL && b.from.Before(r.start) && !b.soft && !b.purged.IsZero() && at.Before(b.purged) {
			w.fail("stale", r, "a lie of %.3f after a purge at %.3f", at.Sub(w.began).Seconds(), b.from.Sub(w.began).Seconds())
		}
	}
}
