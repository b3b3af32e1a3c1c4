package sibling

import "time"

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

	firstQuarantine = time.Second
	lastQuarantine  = 30 * time.Minute
	wornOut         = time.Minute // a quarantine this long shows that the digest is wrong
)

// A stake is what pays for a request to a sibling, in case that it is a false hit.
type stake uint8

const (
	staked    stake = 1 << iota // 0 = nothing: no digest claims the object
	paid                        // in advance, so that requests under way are counted
	onTrust                     // the hits of the sibling do not pay for it
	asRare                      // the same, and it claims no more than its error rate explains
	overdrawn                   // it began a quarantine, or was sent after one
)

// lookedUp counts a lookup of so many identities.
func (h *Health) lookedUp(identities int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lookups += int64(identities)
	h.onTrust, h.asRare = max(0, h.onTrust-trustShare), max(0, h.asRare-rareShare)
}

// credit brings the credit of r up to date, for a digest with that error rate, and returns it. h.mu
// is held.
func (h *Health) credit(r *record, falsePositives float64) float64 {
	r.trust = trustAtFirst * promised(falsePositives)
	explained := min(explainedBy*falsePositives, mostExplain) * float64(h.lookups-r.explained)
	if r.debt > 0 {
		r.debt = max(0, r.debt-explained)
	}
	r.claims, r.explained = max(0, r.claims-explained), h.lookups
	return r.trust - r.debt
}

// trusted returns the requests that count against the limit for r, which hits do not pay for. h.mu is held.
func (h *Health) trusted(r *record) (s stake, requests *float64) {
	if r.claims <= fewClaims {
		return asRare, &h.asRare
	}
	return onTrust, &h.onTrust
}

// worthAsking reports whether r has the credit for a request, or its quarantine is over. h.mu is
// held.
func (h *Health) worthAsking(r *record, falsePositives float64, now time.Time) bool {
	if h.credit(r, falsePositives) < 1 && now.Before(r.mistrustedUntil) {
		return false
	}
	_, requests := h.trusted(r)
	return r.debt <= -1 || *requests <= mostOnTrust-1
}

// stake takes from the credit of a candidate what a request to it may cost, unless it has not had a
// false hit. ok is false if it is not worth a request, after all.
func (h *Health) stake(c Candidate) (s stake, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, now := h.of(c.Peer), time.Now()
	if !h.worthAsking(r, c.FalsePositiveRate, now) {
		return 0, false
	}
	if r.debt == 0 && r.trust >= 1 {
		return staked, true // many requests at once are no sign of many false hits
	}
	return h.pay(r, now), true
}

// pay takes from the credit of r what a false hit costs. h.mu is held.
func (h *Health) pay(r *record, now time.Time) stake {
	s := staked | paid
	if r.debt > -1 {
		of, requests := h.trusted(r)
		s |= of
		*requests++
	}
	if r.debt = min(r.debt+1, trustAtFirst); r.trust-r.debt < 1 {
		s |= overdrawn
		r.mistrustedUntil = now.Add(min(firstQuarantine<<min(r.mistrusted, 20), lastQuarantine))
		r.mistrusted++
	}
	return s
}

// settle gives back what was staked on a request unless it was a waste. It reports whether the
// sibling is now quarantined for so long that its digest must be wrong.
func (h *Health) settle(c Candidate, s stake, o outcome) (wrong bool) {
	if s == 0 {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.of(c.Peer)
	if o == falseHit {
		if s&paid == 0 {
			s = h.pay(r, time.Now())
		}
		return s&overdrawn != 0 && time.Until(r.mistrustedUntil) >= wornOut-time.Second
	}
	if s&paid != 0 {
		r.debt--
	}
	if s&onTrust != 0 {
		h.onTrust = max(0, h.onTrust-1)
	}
	if s&asRare != 0 {
		h.asRare = max(0, h.asRare-1)
	}
	switch {
	case o == hit:
		r.debt = max(min(r.debt, 0)-hitWorth, -mostCredit)
		r.mistrusted, r.mistrustedUntil = 0, time.Time{}
		if s&(onTrust|asRare) != 0 || s&paid == 0 {
			h.onTrust, h.asRare = max(0, h.onTrust-hitWorth), max(0, h.asRare-hitWorth)
		}
	case s&overdrawn != 0:
		r.mistrusted, r.mistrustedUntil = max(0, r.mistrusted-1), time.Time{}
	}
	return false
}
