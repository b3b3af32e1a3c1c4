package caddy

import (
	"context"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A cache keeps objects and knows who else does. Its lock keeps the digest in step.
type cache struct {
	mu       sync.Mutex
	objects  map[string]object // by identity
	most     int
	listed   *gossip.Holdings // the same identities
	node     *gossip.Node
	siblings *sibling.Client
}

func newCache(objects int, cfg gossip.Config) (*cache, error) {
	if objects == 0 {
		objects = 10_000
	}
	cfg.Objects = objects
	c := &cache{objects: map[string]object{}, most: objects}
	var err error
	if c.node, err = gossip.New(cfg); err != nil {
		return nil, err
	}
	c.listed = c.node.Holdings()
	if c.siblings, err = sibling.New(sibling.Config{Name: cfg.Name, Locator: sibling.Digests(c.node)}); err != nil {
		return nil, err
	}
	go c.node.Join(context.Background()) // until Destruct; it logs why it cannot
	return c, nil
}

// Destruct is called when no configuration uses the cache any more.
func (c *cache) Destruct() error {
	c.siblings.CloseIdleConnections()
	return c.node.Close()
}

func (c *cache) get(identity string) (object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.objects[identity]
	if ok && !time.Now().Before(o.expires) {
		c.drop(identity)
		return object{}, false
	}
	return o, ok
}

func (c *cache) put(identity string, o object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for old := range c.objects {
		if len(c.objects) < c.most {
			break
		}
		c.drop(old) // any one, since maps have no order
	}
	if _, had := c.objects[identity]; !had {
		c.listed.Add(identity)
	}
	c.objects[identity] = o
}

func (c *cache) drop(identity string) {
	delete(c.objects, identity)
	c.listed.Remove(identity)
}
