package secrets

import (
	"bytes"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// A Ring has the secrets that a node accepts, the one that it uses first. It is immutable. A node
// without a secret has an empty ring.
type Ring struct {
	Secrets []*Secret
	Stream  *tls.Config // for both ends; nil means plain streams
}

// New derives the keys of a node that uses primary and accepts the others too.
func New(primary []byte, accept [][]byte) (*Ring, error) {
	if len(primary) == 0 {
		if len(accept) > 0 {
			return nil, fmt.Errorf("secrets to accept, but none to use")
		}
		return &Ring{}, nil
	}
	r := &Ring{}
	for _, b := range append([][]byte{primary}, accept...) {
		if len(b) < Min {
			return nil, fmt.Errorf("secret of %d bytes: want at least %d", len(b), Min)
		}
		s, err := derive(b)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(r.Secrets, func(o *Secret) bool { return bytes.Equal(o.public, s.public) }) {
			r.Secrets = append(r.Secrets, s)
		}
	}
	if len(r.Secrets) > exchange.MaxSecrets {
		return nil, fmt.Errorf("%d secrets: want at most %d", len(r.Secrets), exchange.MaxSecrets)
	}
	r.Stream = r.tls()
	return r, nil
}

// tls returns a configuration with which only peers with accepted secrets can connect: the handshake
// proves that the other end has the private key, and VerifyConnection that the key is that of an
// accepted secret.
func (r *Ring) tls() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		CurvePreferences:       []tls.CurveID{tls.X25519}, // with ML-KEM, a handshake takes 3.8 kB instead of 1.5
		Certificates:           []tls.Certificate{r.Secrets[0].certificate},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // there is no authority to verify by; the key itself is compared
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if !r.Accepts(Shown(s)) {
				return exchange.ErrSecret
			}
			return nil
		},
	}
}

// Shown returns the key by which the other end of a stream proved to have a secret.
func Shown(s tls.ConnectionState) ed25519.PublicKey {
	if len(s.PeerCertificates) == 0 {
		return nil
	}
	key, _ := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	return key
}

// Accepts reports whether public is the key of one of the ring's secrets.
func (r *Ring) Accepts(public ed25519.PublicKey) bool {
	return slices.ContainsFunc(r.Secrets, func(s *Secret) bool { return bytes.Equal(s.public, public) })
}

// IDs returns the names of the secrets, the one in use first.
func (r *Ring) IDs() []uint32 {
	var out []uint32
	for _, s := range r.Secrets {
		out = append(out, s.ID)
	}
	return out
}

// Seal encrypts a packet, if there is a secret.
func (r *Ring) Seal(packet []byte) []byte {
	if len(r.Secrets) == 0 {
		return packet
	}
	return r.Secrets[0].packets.seal(packet)
}

// Open returns a copy of the packet in b; nil if it was not sealed under an accepted secret.
func (r *Ring) Open(b []byte) []byte {
	if len(r.Secrets) == 0 {
		return bytes.Clone(b)
	}
	for _, s := range r.Secrets {
		if packet, ok := s.packets.open(b); ok {
			return packet
		}
	}
	return nil
}

// Text returns the name of a secret in hexadecimal, in the order of the bytes in messages.
func Text(id uint32) string {
	return hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, id))
}
