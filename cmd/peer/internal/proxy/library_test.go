package proxy

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/httpcache"
	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/memnet"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// startLibrary starts a proxy that is an [httpcache.Member] in place of a peer, over that store.
func (w *world) startLibrary(name string, open func(bodies.Hooks) (bodies.Store, error)) (stop func()) {
	origin := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return w.net.dial(ctx, network, addr)
	},
		DisableCompression: true}
	host := memnet.New(1).Host("10.0.0.1")
	node, err := gossip.New(gossip.Config{Name: name, Bind: "10.0.0.1:7946", Service: ":3128", Objects: 100, Profile: digest.HTTP, Advanced: gossip.Advanced{Network: host}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	cache, err := httpcache.NewMember(httpcache.MemberConfig{Node: node, Open: open, Transport: origin})
	if err != nil {
		panic(err)
	}
	t := cache.Transport(origin)
	w.serve("peer-"+name+":3128", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		out := r.Clone(r.Context())
		out.RequestURI = ""
		rfc9111.RemoveHopByHop(out.Header)
		if _, ok := out.Header["User-Agent"]; !ok {
			out.Header["User-Agent"] = nil
		}
		if r.ContentLength == 0 {
			out.Body = nil
		}
		resp, err := t.RoundTrip(out)
		if err != nil {
			status := rfc9111.Status{Cache: name}
			status.Add(rw.Header())
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		maps.Copy(rw.Header(), resp.Header)
		rw.WriteHeader(resp.StatusCode)
		if _, err := io.Copy(rw, resp.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}))
	return func() {
		node.Close()
		cache.Close()
		origin.CloseIdleConnections()
	}
}

// notLibrary returns why a row does not apply to a transport; "" = it does.
func (r row) notLibrary() string {
	const proxy = "for intermediaries: a transport in a client is none"
	switch r.name {
	case "a request that comes round is refused", "Max-Forwards counts down", "TRACE ends here", "errors have it too":
		return proxy
	case "escapes of unreserved characters", "case of escapes", "dot segments", "bytes that a query must not have":
		return "it sends a request on as it is, and keeps apart what may differ"
	case "a range in another unit fetches the whole":
		return "optional: it passes it on"
	case "Set-Cookie does not keep a response with a lifetime out if a rule says so":
		return "an operator's rules are `peer`'s"
	}
	return ""
}
