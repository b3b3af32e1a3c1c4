package httpcache

import "github.com/summarycache/summarycache/gossip/httpcache/bodies"

// A Store keeps responses: those of [memstore.Open] and [diskstore.Store] do.
type Store = bodies.Store
