package peertls

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"github.com/summarycache/summarycache/gossip/http1"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A Transport sends requests to siblings over TLS, each to the peer that [sibling.PeerOf] names.
// Requests without such a name are for Squids, which have no certificate of the cluster, and are sent
// in plain HTTP. Connections are pooled by name, so that one is never used for another peer that has
// taken over the address.
type Transport struct {
	identity *Identity
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	plain    *http1.Transport

	mu     sync.Mutex
	byPeer map[string]*http1.Transport
}

// maxTransports limits the peers whose connections are pooled: as many as there may be members.
const maxTransports = 16384

// NewTransport returns a transport for the peer of an identity.
func NewTransport(i *Identity, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Transport {
	return &Transport{identity: i, dial: dial, plain: http1.ToSiblings(dial), byPeer: make(map[string]*http1.Transport)}
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	peer := sibling.PeerOf(r.Context())
	if peer == "" {
		return t.plain.RoundTrip(r)
	}
	return t.to(peer).RoundTrip(r)
}

func (t *Transport) to(peer string) *http1.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.byPeer[peer]; own != nil {
		return own
	}
	if len(t.byPeer) >= maxTransports {
		t.closeIdle()
		clear(t.byPeer)
	}
	config := t.identity.Client(peer)
	own := http1.ToSiblings(func(ctx context.Context, network, addr string) (net.Conn, error) {
		raw, err := t.dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, err
		}
		return conn, nil
	})
	t.byPeer[peer] = own
	return own
}

// CloseIdleConnections closes the connections that no request uses.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plain.CloseIdleConnections()
	t.closeIdle()
}

func (t *Transport) closeIdle() {
	for _, own := range t.byPeer {
		own.CloseIdleConnections()
	}
}
