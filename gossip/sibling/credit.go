package sibling

import (
	"time"

	"github.com/summarycache/summarycache/gossip/internal/backoff"
)

// A hit spares the origin a request, and a false hit costs one to a sibling. So a sibling has a
// credit of false hits, which its hits raise. A sibling that has not proved itself has a little on
// trust, less if its own digest expects many false hits, and gets back what the error rate of that
// digest explains. Without credit it is quarantined: it is asked once after a while, and after
// twice that if that is a false hit, too. All requests on trust have a common limit, so that many
// names cost no more than a few. Siblings whose digests claim no more than their error rates explain
// have one of their own: a cluster that starts empty has nothing but false hits at first, and the
// more members, the more.
const (
	hitWorth   = 8  // false hits: claims are worth a request if more than one in nine is true
	mostCredit = 64 // so that a good sibling is asked on, although much of what it claims has just been removed

	trustAtFirst = 6 // credit on trust, if the digest has no false positives
	explainedBy  = 4 // times the false hits that the digest's error rate leads to are explained
	mostExplain  = 1.0 / 50
	fewClaims    = 3        // recent claims that the error rate does not explain are chance
	trustShare   = 1.0 / 32 // of the lookups may end in a false hit of a sibling that is asked on trust
	rareShare    = 1.0 / 8  // the same for siblings that claim no more than their error rates explain
	mostOnTrust  = 32       // of either at once

	firstQuarantine = time.Second // up to lastAccused; one as long as firstAccused shows that the digest is wrong
)

// A credit is what the word of a peer was worth.
type credit struct {
	debt  float64         // false hits less what hits and time have made up for; negative = its hits pay for more
	at    int64           // Health.lookups when debt was last reduced by what the error rate explains
	trust float64         // debt that was allowed then
	until backoff.Backoff // without credit it is asked once after this
}

// quarantined reports whether there is no credit, and the wait is not over.
func (c *credit) quarantined(now time.Time) bool { return c.trust-c.debt < 1 && !c.until.Over(now) }

// lookedUp counts a lookup of so many identities.
func (h *Health) lookedUp(identities int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lookups += int64(identities)
	h.onTrust, h.asRare = max(0, h.onTrust-trustShare), max(0, h.asRare-rareShare)
}

// explain reduces the debt, and the claims that count, by what a digest with that error rate explains. h.mu is held.
func (h *Health) explain(r *record, falsePositives float64) {
	d := &r.digest
	explained := min(explainedBy*falsePositives, mostExplain) * float64(h.lookups-d.at)
	if d.debt > 0 {
		d.debt = max(0, d.debt-explained)
	}
	d.trust, d.at, r.claims = trustAtFirst*promised(falsePositives), h.lookups, max(0, r.claims-explained)
}

// worthAsking reports whether r, with a digest of that error rate, has the credit for a request, or its quarantine is
// over. h.mu is held.
func (h *Health) worthAsking(r *record, falsePositives float64, now time.Time) bool {
	h.explain(r, falsePositives)
	return !r.digest.quarantined(now) && (r.digest.debt <= -1 || *h.trusted(r) <= mostOnTrust-1)
}

// trusted returns the requests that count against the limit for r, which hits do not pay for. h.mu is held.
func (h *Health) trusted(r *record) *float64 {
	if r.claims <= fewClaims {
		return &h.asRare
	}
	return &h.onTrust
}

// take reports whether a candidate is still worth a request. One without credit is asked once, and no more while that
// is under way.
func (h *Health) take(c Candidate) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, now := h.of(c.Peer), time.Now()
	if !h.worthAsking(r, c.FalsePositiveRate, now) {
		return false
	}
	if d := &r.digest; d.trust-d.debt < 1 {
		d.until.Until = now.Add(d.until.Wait(firstQuarantine, lastAccused))
	}
	return true
}

// pay takes a false hit from the credit of r. It reports whether the quarantine is now so long that the digest must be
// wrong. h.mu is held.
func (h *Health) pay(r *record, now time.Time) (wrong bool) {
	d := &r.digest
	if d.debt > -1 {
		*h.trusted(r)++
	}
	if d.debt = min(d.debt+1, trustAtFirst); d.trust-d.debt >= 1 {
		return false
	}
	d.until.Fail(now, firstQuarantine, lastAccused)
	return d.until.Until.Sub(now) >= firstAccused
}

// earn adds a hit to the credit of r, and makes up for other requests on trust. h.mu is held.
func (h *Health) earn(r *record) {
	d := &r.digest
	if d.debt > -1 {
		h.onTrust, h.asRare = max(0, h.onTrust-hitWorth), max(0, h.asRare-hitWorth)
	}
	d.debt, d.until = max(min(d.debt, 0)-hitWorth, -mostCredit), backoff.Backoff{}
}
