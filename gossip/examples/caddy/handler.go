// Package caddy is a handler for Caddy: a shared HTTP cache that gets objects from the caches of other Caddies.
package caddy

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/httpcache"
	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

func init() { caddy.RegisterModule(new(Handler)) }

// A Handler is the module http.handlers.summarycache; JSON sets its fields.
type Handler struct {
	Name    string   `json:"name"`    // unique in the cluster
	Gossip  string   `json:"gossip"`  // host:port, UDP and TCP
	Service string   `json:"service"` // host:port where this Caddy answers the others
	Join    []string `json:"join"`    // gossip addresses of others
	Secret  string   `json:"secret"`  // of the cluster, such as {env.SECRET} or {file./etc/secret}; "" = none
	Bytes   int64    `json:"bytes"`   // of memory for objects; 0 = 256 MiB
	*cache           // of this name, as long as any configuration has it
}

func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.summarycache", New: func() caddy.Module { return new(Handler) }}
}

func (h *Handler) Provision(ctx caddy.Context) error {
	c, _, err := caches.LoadOrNew(h.Name, func() (caddy.Destructor, error) {
		return newCache(cmp.Or(h.Bytes, 256<<20), gossip.Config{Name: h.Name, Bind: h.Gossip, Service: h.Service, Join: h.Join, Objects: 10_000, Profile: digest.HTTP,
			Secret: []byte(caddy.NewReplacer().ReplaceAll(h.Secret, "")), Logger: ctx.Slogger()})
	})
	if err == nil {
		h.cache = c.(*cache)
	}
	return err
}

func (h *Handler) Cleanup() error {
	if h.cache == nil {
		return nil
	}
	_, err := caches.Delete(h.Name)
	return err
}

// ServeHTTP answers from the store, from a sibling, or by the next handler; siblings from the store only.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return h.Serve(w, r, next.ServeHTTP)
}

var caches = caddy.NewUsagePool() // by name
type cache struct {
	*httpcache.Member
	node *gossip.Node
}

func newCache(bytes int64, cfg gossip.Config) (*cache, error) {
	node, err := gossip.New(cfg)
	if err != nil {
		return nil, err
	}
	c, err := httpcache.NewMember(httpcache.MemberConfig{Node: node, Open: memstore.Open(bytes), Logger: cfg.Logger})
	if err != nil {
		node.Close()
		return nil, err
	}
	go node.Join(context.Background()) // until Destruct; it logs errors
	return &cache{c, node}, nil
}

// Destruct is called when no configuration uses the cache any more.
func (c *cache) Destruct() error { return errors.Join(c.node.Close(), c.Close()) }
