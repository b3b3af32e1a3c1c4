package httpcache

import "github.com/summarycache/summarycache/gossip/httpcache/bodies"

// A Store keeps responses: [memstore.Store] and [diskstore.Store] do.
type Store = bodies.Store
