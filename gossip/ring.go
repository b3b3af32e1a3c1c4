package gossip

import (
	"bytes"
	"crypto/ed25519"
	"crypto/tls"
	"fmt"
	"slices"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// A ring has the secrets that a node accepts, the one that it uses first. It is immutable. A node
// without a secret has an empty ring.
type ring struct {
	secrets []*secret
	stream  *tls.Config // for both ends; nil means plain streams
}

// plainLabel is the label with which memberlist's packets and streams begin. It is removed from
// packets before they are sent.
const plainLabel = "sc1"

var plainHeader = append([]byte{firstMemberlist, byte(len(plainLabel))}, plainLabel...)

// newRing derives the keys of a node that uses primary and accepts the others too.
func newRing(primary []byte, accept [][]byte) (*ring, error) {
	if len(primary) == 0 {
		if len(accept) > 0 {
			return nil, fmt.Errorf("secrets to accept, but none to use")
		}
		return &ring{}, nil
	}
	r := &ring{}
	for _, b := range append([][]byte{primary}, accept...) {
		if len(b) < MinSecret {
			return nil, fmt.Errorf("secret of %d bytes: want at least %d", len(b), MinSecret)
		}
		s, err := derive(b)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(r.secrets, func(o *secret) bool { return bytes.Equal(o.public, s.public) }) {
			r.secrets = append(r.secrets, s)
		}
	}
	if len(r.secrets) > exchange.MaxSecrets {
		return nil, fmt.Errorf("%d secrets: want at most %d", len(r.secrets), exchange.MaxSecrets)
	}
	r.stream = r.tls()
	return r, nil
}

// tls returns a configuration with which only peers with accepted secrets can connect: the handshake
// proves that the other end has the private key, and VerifyConnection that the key is that of an
// accepted secret.
func (r *ring) tls() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		CurvePreferences:       []tls.CurveID{tls.X25519}, // with ML-KEM, a handshake takes 3.8 kB instead of 1.5
		Certificates:           []tls.Certificate{r.secrets[0].certificate},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // there is no authority to verify by; the key itself is compared
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if !r.accepts(shown(s)) {
				return exchange.ErrSecret
			}
			return nil
		},
	}
}

// shown returns the key by which the other end of a stream proved to have a secret.
func shown(s tls.ConnectionState) ed25519.PublicKey {
	if len(s.PeerCertificates) == 0 {
		return nil
	}
	key, _ := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	return key
}

// accepts reports whether public is the key of one of the ring's secrets.
func (r *ring) accepts(public ed25519.PublicKey) bool {
	return slices.ContainsFunc(r.secrets, func(s *secret) bool { return bytes.Equal(s.public, public) })
}

// ids returns the names of the secrets, the one in use first.
func (r *ring) ids() []uint32 {
	var out []uint32
	for _, s := range r.secrets {
		out = append(out, s.id)
	}
	return out
}

// seal encrypts a packet, if there is a secret.
func (r *ring) seal(packet []byte) []byte {
	if len(r.secrets) == 0 {
		return packet
	}
	return r.secrets[0].packets.seal(packet)
}

// open returns a copy of the packet in b; nil if it was not sealed under an accepted secret.
func (r *ring) open(b []byte) []byte {
	if len(r.secrets) == 0 {
		return bytes.Clone(b)
	}
	for _, s := range r.secrets {
		if packet, ok := s.packets.open(b); ok {
			return packet
		}
	}
	return nil
}
