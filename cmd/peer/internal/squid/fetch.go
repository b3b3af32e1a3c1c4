package squid

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	format "github.com/summarycache/summarycache/digest/squid"
	"github.com/summarycache/summarycache/gossip/sibling"
)

const (
	slack       = time.Second      // a Squid takes to write a digest after the old one expired
	grace       = 10 * time.Second // by which a fetch may be late before the digest counts as old
	fetchTime   = 2 * time.Minute  // for a whole digest
	lastBackoff = 10 * time.Minute
	headerTime  = 10 * time.Second
	untrusted   = time.Hour // after which a digest that can't be confirmed is dropped
)

// run keeps the Squid's digest until ctx ends.
func (n *neighbour) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		var wait time.Duration
		at, err := n.fetch(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if failures > 0 || n.known.Load() == nil {
				n.cfg.Logger.Info("fetched a Squid's digest", "squid", n.addr, "digest", at.digest)
			}
			failures = 0
			n.set(at)
			wait = time.Until(at.next)
		default:
			if failures == 0 {
				n.cfg.Logger.Warn("cannot fetch a Squid's digest, trying again", "squid", n.addr, "err", err)
			}
			n.distrust()
			wait = min(n.cfg.MinInterval<<min(failures, 10), max(lastBackoff, n.cfg.MinInterval))
			wait += rand.N(wait/10 + 1)
			failures++
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

func (n *neighbour) set(at *known) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known.Swap(at) == nil {
		n.since = time.Now()
	}
}

// distrust drops a digest that was not confirmed for too long.
func (n *neighbour) distrust() {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.known.Load()
	if at == nil && n.since.IsZero() || at != nil && time.Since(at.next) > untrusted {
		n.known.Store(nil)
		n.since = time.Now()
	}
}

// fetch asks for the digest: whole, or whether the one at hand is still the
// latest.
func (n *neighbour) fetch(ctx context.Context) (*known, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	old := n.known.Load()
	r := (&http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "http", Host: n.addr, Path: format.Path},
		Header: http.Header{"Accept": {format.ContentType}, "User-Agent": {"summarycache"}},
	}).WithContext(ctx)
	if old != nil && old.modified != "" {
		r.Header["If-Modified-Since"] = []string{old.modified}
	}
	answer, err := n.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	now := time.Now()
	at := &known{modified: answer.Header.Get("Last-Modified"), name: sibling.Asker(answer.Header), confirmed: now}
	at.next = now.Add(min(max(n.remaining(answer.Header), n.cfg.MinInterval), n.cfg.MaxInterval))
	switch {
	case answer.StatusCode == http.StatusOK:
		at.digest, err = format.Read(answer.Body, answer.ContentLength, format.Limits{})
		return at, err
	case answer.StatusCode == http.StatusNotModified && old != nil:
		at.digest, at.modified = old.digest, old.modified
		if at.name == "" {
			at.name = old.name
		}
		return at, nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if answer.StatusCode == http.StatusNotFound && strings.Contains(string(text), "building its digest") {
		return nil, errors.New("it is building its first digest")
	}
	return nil, fmt.Errorf("it answers %d: see digest_generation and http_access in its squid.conf", answer.StatusCode)
}

// remaining is how long the Squid will stand by its digest, by its own clock. A
// Squid that does not say is asked at the least interval.
func (n *neighbour) remaining(h http.Header) time.Duration {
	expires, err1 := http.ParseTime(h.Get("Expires"))
	date, err2 := http.ParseTime(h.Get("Date"))
	if err1 != nil || err2 != nil || !expires.After(date) {
		return 0
	}
	return expires.Sub(date) + slack
}
