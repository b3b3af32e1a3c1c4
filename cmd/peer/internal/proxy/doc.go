// Package proxy is the request path of a cache node: an [http.Handler] that
// answers clients and siblings from the store, from the neighbour whose digest
// matches, or from the origin.
//
// With an origin configured it is a reverse proxy; without one it is a forward
// proxy that also tunnels CONNECT. Start from [New]; [Handler.Counters] counts
// what became of the requests, and [Config.Observe] sees each of them.
package proxy
