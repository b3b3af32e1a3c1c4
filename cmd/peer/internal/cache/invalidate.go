package cache

import (
	"context"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// writeWait is for how long the answer to a write waits until its URL is removed
// everywhere. A peer that takes longer hears of it after the answer.
const writeWait = time.Second

// invalidate removes every stored response of canonical URLs, here and at all others.
func (c *Cache) invalidate(ctx context.Context, urls []string) {
	targets := make([]invalidation.Target, len(urls))
	for i, url := range urls {
		c.Invalidations.Add(uint64(c.Purge(url)))
		targets[i] = TargetOf(url, false)
	}
	if c.cfg.Cluster == nil || len(urls) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWait)
	defer cancel()
	if err := c.cfg.Cluster.Invalidate(ctx, targets...); err != nil {
		c.log.Warn("a write did not reach all peers in time; they may serve what was before until they hear of it", "url", urls[0], "err", err)
	}
}

// TargetOf is what an invalidation is for that removes the responses of a canonical URL,
// or of all that begin with it.
func TargetOf(url string, prefix bool) invalidation.Target {
	t := invalidation.Target{Kind: invalidation.Identity, Name: rfc9111.Identity(url, nil, nil)}
	if prefix {
		t.Kind = invalidation.Prefix
	}
	return t
}

// Invalidated removes what another peer, or this one, says is out of date, and returns
// how many responses there were.
func (c *Cache) Invalidated(t invalidation.Target) int {
	url, ours := strings.CutPrefix(t.Name, rfc9111.Identity("", nil, nil))
	switch {
	case t.Kind == invalidation.Identity && ours:
		return c.Purge(url)
	case t.Kind == invalidation.Identity: // nothing that is stored here
		return 0
	case t.Kind == invalidation.Prefix && ours:
		return c.PurgePrefix(url)
	case t.Kind == invalidation.Prefix && !strings.HasPrefix(rfc9111.Identity("", nil, nil), t.Name):
		return 0
	}
	return c.PurgePrefix("")
}
