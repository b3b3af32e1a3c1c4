package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// Tags are those of a page: its own, and one of four that many share.
func (p *page) tags() []string {
	if p.url >= tinyURL {
		return nil
	}
	return []string{sharedTag(p.url), fmt.Sprintf("u%d", p.url)}
}

func sharedTag(n int) string { return fmt.Sprintf("s%d", n%4) }

// tagField is the field of a page with its tags: each of the three that a peer knows.
func (p *page) tagField() string {
	tags := p.tags()
	if tags == nil {
		return ""
	}
	return []string{"Surrogate-Key: ", "Cache-Tag: ", "Xkey: "}[p.url%3] + strings.Join(tags, []string{" ", ", ", " "}[p.url%3]) + "\r\n"
}

// purge removes URLs at one peer or everywhere: one, or all with a tag.
func (w *world) purge(p *peer, f fault) {
	n := p.now()
	if n == nil {
		return
	}
	order := admin.PurgeRequest{URL: w.urlOf(f.URL), Everywhere: strings.HasSuffix(f.Kind, "-everywhere"), Soft: f.Soft}
	urls, tag := []int{f.URL}, false
	if strings.HasPrefix(f.Kind, "purge-tag") {
		tag = true
		order.URL, order.Tags = "", []string{pageOf(f.URL).tags()[f.N%2]}
		urls = slices.DeleteFunc(w.urls(), func(url int) bool { return !slices.Contains(pageOf(url).tags(), order.Tags[0]) })
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	b := barrier{purged: time.Now(), soft: f.Soft, tag: tag, alone: !order.Everywhere}
	numbers := make([]int, len(urls))
	for i, url := range urls {
		numbers[i] = w.origin.version(pageOf(url), b.purged)
	}
	lives := make([]int, len(w.peers))
	for i, q := range w.peers {
		lives[i] = q.lives()
	}
	report, err := n.Purge(ctx, order)
	if err != nil {
		w.fail("error", nil, "p%d does not purge %+v: %v", p.index, order, err)
		return
	}
	for _, done := range report.Peers {
		var i int
		if _, err := fmt.Sscanf(done.Peer, "p%d", &i); err != nil || done.Error != "" {
			continue
		}
		for k, url := range urls {
			b.node, b.life, b.url, b.number, b.from = i, lives[i], url, numbers[k], time.Now()
			w.barrier(b)
		}
	}
}

// again is how soon after a purge a request is one that comes at once.
const again = time.Second

// judgeBarriers checks that an answer is not older than what was written or purged at its peer
// before. What was purged softly may be served as stale.
func (w *world) judgeBarriers(r *result, standsIn bool) {
	w.origin.mu.Lock()
	given := w.origin.given[r.version]
	w.origin.mu.Unlock()
	w.mu.Lock()
	barriers := w.barriers
	w.mu.Unlock()
	for _, b := range barriers {
		other := b.node != r.Node || b.life != r.life || b.url != r.URL || b.variant > 0 && b.variant != 1+r.version.sort
		if other || !b.from.Before(r.start) || b.soft && standsIn {
			continue
		}
		at := b.from.Sub(w.began).Seconds()
		switch {
		case r.version.number < b.number:
			w.fail("stale", r, "version %d after %d was written, purged or reloaded at %.3f", r.version.number, b.number, at)
		case given.Before(b.purged):
			w.fail("stale", r, "the origin gave that version last %v before it was purged at %.3f", b.purged.Sub(given), at)
		}
		if !b.purged.IsZero() && r.start.Sub(b.from) < again {
			w.sometimes("an answer within a second after a purge")
		}
	}
}

// urls are all that the schedule asks for.
func (w *world) urls() []int {
	urls := slices.Clone(w.s.Extra)
	for u := range w.s.URLs {
		urls = append(urls, w.s.First+u)
	}
	return urls
}
