package sibling

import (
	"context"
	"net"
	"net/http"
	"time"
)

// NewHTTPTransport returns the default transport of lookup requests: plain connections, many to
// one sibling, and bodies as they are sent. dial nil = net.Dialer. The caller may change the
// transport before its first use.
func NewHTTPTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Transport {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	return &http.Transport{
		DialContext:            dial,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        60 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		WriteBufferSize:        8 << 10,
		ReadBufferSize:         32 << 10,
	}
}

type peerKey struct{}

// WithPeer returns a context for requests to a peer, by its name in the cluster. A Config.HTTP
// that checks names needs it.
func WithPeer(ctx context.Context, peer string) context.Context {
	return context.WithValue(ctx, peerKey{}, peer)
}

// PeerOf returns the peer that a request is for or that answered it; "" = the request is not for
// a peer, or the origin answered.
func PeerOf(ctx context.Context) string {
	peer, _ := ctx.Value(peerKey{}).(string)
	return peer
}
