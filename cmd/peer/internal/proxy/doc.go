// Package proxy is the request path of a cache node: an [http.Handler] that answers clients and
// siblings from the store, from a sibling whose digest has the key, or from the origin.
//
// With an origin configured it is a reverse proxy. Without one it is a forward proxy that also
// tunnels CONNECT. Start from [New]. [Handler.Counters] counts requests by how they were
// answered, and [Config.Observe] sees each of them.
package proxy
