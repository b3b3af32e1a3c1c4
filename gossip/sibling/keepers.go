package sibling

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/insider"
	"github.com/summarycache/summarycache/gossip/internal/backoff"
	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// A peer that keeps no digests asks one that does, a keeper, who has an object. A keeper can name peers that lack it,
// and these are not to blame; or nobody, so that what others have is fetched from the origin. One keeper cannot be
// judged by itself, but two can: when a named peer lacks the object, another keeper is asked about it, and what that
// one says decides whose word was wrong, the keeper's or the peer's digest. And now and then a second keeper is asked
// as well when one names nobody. A keeper whose word was worth little is asked after all others for a while. One that
// is alone is judged by the peers that it names, as if it were their digests.
const (
	mostKeepers = 2  // that are asked for a lookup, besides those that answer "not yet"
	lookTwice   = 16 // one in so many answers that name nobody is checked; all those of a keeper that was wrong lately
)

// ask returns the candidates for each identity if the Locator has to ask for them; otherwise nil. denied is a keeper
// that named nobody; "" = none did.
func (c *Client) ask(r *LookupRequest) (found [][]Candidate, denied string) {
	asker, ok := c.asker()
	if !ok || len(r.Identities) == 0 {
		return nil, ""
	}
	keepers, asks := asker.Keepers()
	if !asks {
		return nil, ""
	}
	ctx, h := cmp.Or(r.Context, context.Background()), c.cfg.Health
	found, by := c.askKeepers(ctx, asker, h.order(keepers, c.cfg.Name, false), r.Identities)
	if by == "" {
		return make([][]Candidate, len(r.Identities)), ""
	}
	named := func(to []Candidate) bool { return len(to) > 0 }
	if slices.ContainsFunc(found, named) || !h.checks(by) {
		return found, ""
	}
	others := h.order(without(keepers, by), c.cfg.Name, true)
	if more, _ := c.askKeepers(ctx, asker, others, r.Identities); slices.ContainsFunc(more, named) {
		return more, by
	}
	return found, ""
}

// askKeepers asks keepers, one after another, until one has answered, which it returns; "" = none has.
func (c *Client) askKeepers(ctx context.Context, from asker, keepers []insider.Keeper, ids []string) (
	found [][]Candidate, by string) {
	h, silences := c.cfg.Health, 0
	for i, k := range keepers {
		wait, start := h.patience(k.Name), time.Now()
		if silences == mostKeepers-1 || i == len(keepers)-1 {
			wait = askTimeout // there is nobody else to ask
		}
		one, cancel := context.WithTimeout(ctx, wait)
		found, err := from.Ask(one, k.Name, ids)
		cancel()
		o := outcome{peer: k.Name, kind: question, result: answerOf(err), took: time.Since(start)}
		switch {
		case err == nil:
			h.record(o)
			return found, k.Name
		case ctx.Err() != nil || errors.Is(err, gossip.ErrUnreachable):
			continue // which says nothing about it
		case errors.Is(err, insider.ErrNotYet):
			o.result = notYet
		default:
			silences++
		}
		if h.record(o); silences == mostKeepers {
			break
		}
	}
	return nil, ""
}

// judge finds out why a peer that a keeper named lacked the object: another keeper does not name it, or does, and then
// its digest claims too much. One such question is asked at a time; the peers of others that are named wrongly
// meanwhile are not judged.
func (c *Client) judge(to Ranked) {
	asker, ok := c.asker()
	if !ok || !c.judging.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer c.judging.Store(false)
		h := c.cfg.Health
		keepers, _ := asker.Keepers()
		ctx, cancel := context.WithTimeout(context.Background(), mostKeepers*askTimeout)
		defer cancel()
		found, by := c.askKeepers(ctx, asker, h.order(without(keepers, to.Via), c.cfg.Name, true), []string{to.Identity})
		if by != "" && !slices.ContainsFunc(found[0], func(o Candidate) bool { return o.Peer == to.Peer }) {
			_, mistrusted := h.record(outcome{peer: to.Via, kind: other, result: misled})
			asker.Judge(to.Via, insider.Misled, mistrusted)
			return
		}
		asker.Judge(to.Via, insider.Wrong, false)
		if _, wrong := h.record(outcome{peer: to.Peer, kind: other, result: lacked}); wrong {
			c.cfg.Locator.Distrust(to.Peer)
		}
	}()
}

func without(keepers []insider.Keeper, name string) []insider.Keeper {
	return slices.DeleteFunc(slices.Clone(keepers), func(k insider.Keeper) bool { return k.Name == name })
}

// order returns the keepers in the order in which they are asked: those of this peer's zone first, then the nearest by
// their answers, which count less as they grow old; of those as near as each other, different peers ask different ones.
// Those that did not answer lately are asked after these, and last those that are mistrusted: as witnesses they are not
// asked at all. Those that were silent three times in a row are left out for a while: when all have died, lookups wait
// for nobody.
func (h *Health) order(keepers []insider.Keeper, self string, witnesses bool) []insider.Keeper {
	type placed struct {
		insider.Keeper
		class, level int
		hash         uint64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now, own := time.Now(), hashOf(self)
	var all []placed
	for _, k := range keepers {
		p := placed{k, 0, 0, wire.Mix(hashOf(k.Name) ^ own)}
		if r := h.byName[k.Name]; r != nil {
			if r.quiet(now) || witnesses && !r.word.until.Over(now) {
				continue
			}
			trip := r.asks.value * math.Exp2(-now.Sub(r.askedAt).Seconds()/tripHalfLife.Seconds())
			p.level = levelOf(trip)
			switch {
			case !r.word.until.Over(now) || !r.accused.Over(now):
				p.class = 2
			case !r.silence.Over(now) || !r.suspended.Over(now):
				p.class = 1
			}
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b placed) int {
		zone := 0
		if a.Near != b.Near {
			zone = map[bool]int{true: -1, false: 1}[a.Near]
		}
		return cmp.Or(cmp.Compare(a.class, b.class), zone, cmp.Compare(a.level, b.level), cmp.Compare(a.hash, b.hash))
	})
	sorted := make([]insider.Keeper, len(all))
	for i, p := range all {
		sorted[i] = p.Keeper
	}
	return sorted
}

// patience returns how long to wait for a keeper's answer before another one is asked: twice what it usually takes.
func (h *Health) patience(keeper string) time.Duration {
	r, _ := h.look(keeper)
	if !r.asks.known || r.silence.Row > 0 {
		return askTimeout
	}
	return min(max(time.Duration(2*r.asks.value*float64(time.Second)), leastHedge), askTimeout)
}

// checks reports whether another keeper is to be asked as well, since this one names nobody.
func (h *Health) checks(keeper string) bool {
	r, _ := h.look(keeper)
	return r.word.until.Row > 0 || rand.IntN(lookTwice) == 0
}

// lies takes an answer that another keeper contradicts from the credit of a keeper's word, and reports whether it is
// mistrusted from now on. Digests differ for moments, so a few are forgiven, as many as a digest is that has no false
// positives; one that names nobody for what is there is not, since few of those are noticed. h.mu is held.
func (h *Health) lies(r *record, withheld bool, now time.Time) (mistrusted bool) {
	w := &r.word
	if now.Sub(w.until.Until) > lastAccused {
		w.until = backoff.Backoff{}
	}
	w.debt = max(0, w.debt-mostExplain*float64(h.lookups-w.at)) + 1
	w.at = h.lookups
	if !withheld && w.debt <= trustAtFirst && w.until.Row == 0 {
		return false
	}
	w.debt = 0
	w.until.Fail(now, firstAccused, lastAccused)
	return true
}
