package sibling

import (
	"context"
	"net"
	"net/http"
	"time"
)

// NewHTTPTransport returns what carries questions unless [Config] says otherwise: plain
// connections, many to one sibling, and bodies as they come. dial nil = net.Dialer.
// The caller may change it before its first use.
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

// WithPeer says which peer a request under ctx is for, by its name in the
// cluster: a Config.HTTP that checks names needs it.
func WithPeer(ctx context.Context, peer string) context.Context {
	return context.WithValue(ctx, peerKey{}, peer)
}

// PeerOf returns which peer a request is for, or answered it; "" = it is no question to
// a peer, or the origin answered.
func PeerOf(ctx context.Context) string {
	peer, _ := ctx.Value(peerKey{}).(string)
	return peer
}
