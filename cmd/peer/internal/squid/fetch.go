package squid

import (
	"cmp"
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
	"github.com/summarycache/summarycache/gossip/peering"
)

const (
	slack       = time.Second      // for a Squid to write a new digest after the old one expired
	grace       = 10 * time.Second // for a late fetch, before the digest counts as expired
	fetchTime   = 2 * time.Minute  // limit for a whole digest
	lastBackoff = 10 * time.Minute // longest pause after failures
	headerTime  = 10 * time.Second // limit for the response header
	untrusted   = time.Hour        // after which a digest that cannot be confirmed is dropped
)

// run keeps the Squid's digest up to date until ctx ends. Nothing else writes known.
func (n *neighbour) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		var wait time.Duration
		old := n.known.Load()
		at, err := n.fetch(ctx, old)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if failures > 0 || old.digest == nil {
				n.cfg.Logger.Info("fetched a Squid's digest", "squid", n.addr, "objects", at.digest.Entries(), "bytes",
					at.digest.Size())
			}
			failures = 0
			at.since = old.since
			if old.digest == nil {
				at.since = at.confirmed
			}
			n.known.Store(at)
			wait = time.Until(at.next)
		default:
			if failures == 0 {
				n.cfg.Logger.Warn("cannot fetch a Squid's digest, trying again", "squid", n.addr, "err", err)
			}
			if old.digest == nil && old.since.IsZero() || old.digest != nil && time.Since(old.next) > untrusted {
				n.known.Store(&digestState{since: time.Now()})
			}
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

// fetch requests the digest, on the condition that it is newer than the old one if there is one.
func (n *neighbour) fetch(ctx context.Context, old *digestState) (*digestState, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	r := (&http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "http", Host: n.addr, Path: format.Path},
		Header: http.Header{"Accept": {format.ContentType}, "User-Agent": {"summarycache"}},
	}).WithContext(ctx)
	if old.modified != "" {
		r.Header["If-Modified-Since"] = []string{old.modified}
	}
	answer, err := n.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	now := time.Now()
	at := &digestState{modified: answer.Header.Get("Last-Modified"), name: peering.Asker(answer.Header), confirmed: now}
	at.next = now.Add(min(max(n.remaining(answer.Header), n.cfg.MinInterval), n.cfg.MaxInterval))
	switch {
	case answer.StatusCode == http.StatusOK:
		at.digest, err = format.Read(answer.Body, answer.ContentLength, format.Limits{})
		return at, err
	case answer.StatusCode == http.StatusNotModified && old.digest != nil:
		at.digest, at.name = old.digest, cmp.Or(at.name, old.name)
		at.modified = old.modified
		return at, nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if answer.StatusCode == http.StatusNotFound && strings.Contains(string(text), "building its digest") {
		return nil, errors.New("it is building its first digest")
	}
	return nil, fmt.Errorf("it answers %d: see digest_generation and http_access in its squid.conf", answer.StatusCode)
}

// remaining returns the time until the digest expires, by the Squid's own clock; 0 if the Squid does
// not state it, which leads to the shortest interval.
func (n *neighbour) remaining(h http.Header) time.Duration {
	expires, err1 := http.ParseTime(h.Get("Expires"))
	date, err2 := http.ParseTime(h.Get("Date"))
	if err1 != nil || err2 != nil || !expires.After(date) {
		return 0
	}
	return expires.Sub(date) + slack
}
