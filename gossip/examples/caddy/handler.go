// Package caddy is a handler for Caddy. It is a shared HTTP cache for the handlers behind it, and
// gets objects from the caches of other Caddies.
package caddy

import (
	"context"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/sibling"
)

func init() { caddy.RegisterModule(new(Handler)) }

// A Handler is the module http.handlers.summarycache; JSON sets its fields.
type Handler struct {
	Name    string   `json:"name"`    // unique in the cluster
	Gossip  string   `json:"gossip"`  // host:port, UDP and TCP
	Service string   `json:"service"` // host:port where this Caddy answers the others
	Join    []string `json:"join"`    // gossip addresses of others
	Secret  string   `json:"secret"`  // of the cluster, such as {env.SECRET} or {file./etc/secret}; "" = none
	Objects int      `json:"objects"` // stored at most; 0 = 10,000

	*cache // of this name, as long as any configuration has it
}

// CaddyModule implements caddy.Module.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.summarycache", New: func() caddy.Module { return new(Handler) }}
}

// Provision implements caddy.Provisioner.
func (h *Handler) Provision(ctx caddy.Context) error {
	if h.Objects == 0 {
		h.Objects = 10_000
	}
	c, _, err := caches.LoadOrNew(h.Name, func() (caddy.Destructor, error) {
		return newCache(gossip.Config{Name: h.Name, Bind: h.Gossip, Service: h.Service, Join: h.Join, Objects: h.Objects,
			Secret: []byte(caddy.NewReplacer().ReplaceAll(h.Secret, "")), Logger: ctx.Slogger()})
	})
	if err == nil {
		h.cache = c.(*cache)
	}
	return err
}

// Cleanup implements caddy.CleanerUpper.
func (h *Handler) Cleanup() error {
	if h.cache == nil {
		return nil
	}
	_, err := caches.Delete(h.Name)
	return err
}

// ServeHTTP answers from the store, from a sibling, or by the next handler. Siblings are answered
// from the store only, so requests cannot go in circles.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return h.Serve(w, r, next.ServeHTTP)
}

var caches = caddy.NewUsagePool() // by name

// A cache lives as long as a configuration uses it.
type cache struct {
	*sibling.Cache
	node *gossip.Node
}

func newCache(cfg gossip.Config) (*cache, error) {
	node, err := gossip.New(cfg)
	if err != nil {
		return nil, err
	}
	c, err := sibling.NewCache(node, sibling.NewMemory(node.Holdings(), int64(cfg.Objects), 0), nil)
	if err != nil {
		node.Close()
		return nil, err
	}
	go node.Join(context.Background()) // until Destruct; it logs errors
	return &cache{c, node}, nil
}

// Destruct is called when no configuration uses the cache any more.
func (c *cache) Destruct() error {
	c.Siblings.CloseIdleConnections()
	return c.node.Close()
}
