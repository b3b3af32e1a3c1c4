package secrets

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// Min is the length in bytes of the shortest secret.
const Min = 16

// A Secret has all keys derived from one (PROTOCOL.md 2.1).
type Secret struct {
	ID          uint32 // its name, which reveals nothing about it
	packets     packetSeal
	public      ed25519.PublicKey // of all peers that have it
	certificate tls.Certificate
	Seed        uint64 // of digests
}

// derive derives the keys of a secret in a cluster of a name, which may be empty.
func derive(b []byte, cluster string) (*Secret, error) {
	salt := "summarycache"
	if cluster != "" {
		salt += "\x00" + cluster
	}
	key := func(info string, n int) []byte {
		// Key fails only for lengths beyond the hash's limit.
		k, err := hkdf.Key(sha256.New, b, []byte(salt), info, n)
		if err != nil {
			panic(err)
		}
		return k
	}
	packets, err := newPacketSeal(key("gossip packet tag 1", 32), key("gossip packet key 1", 32))
	if err != nil {
		return nil, err
	}
	id := key("gossip label 1", 4)
	identity := ed25519.NewKeyFromSeed(key("stream identity 1", ed25519.SeedSize))
	certificate, err := selfSigned(identity, cluster)
	if err != nil {
		return nil, err
	}
	return &Secret{
		ID:          binary.LittleEndian.Uint32(id),
		packets:     packets,
		public:      identity.Public().(ed25519.PublicKey),
		certificate: certificate,
		Seed:        digest.SeedFrom(b),
	}, nil
}

// selfSigned returns the certificate that all peers with a secret present, which names their cluster: a refusal can say
// so. Ed25519 signatures are deterministic, so it is the same everywhere.
func selfSigned(identity ed25519.PrivateKey, cluster string) (tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "summarycache"},
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
	if cluster != "" {
		template.Subject.Organization = []string{cluster}
	}
	der, err := x509.CreateCertificate(nil, template, template, identity.Public(), identity)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: identity}, err
}

// Meaning returns the meaning of a failed handshake. A peer with another secret sends an alert, a
// peer without one a refusal. Any other answer is malformed.
func Meaning(err error) error {
	var alert tls.AlertError
	var header tls.RecordHeaderError
	switch {
	case errors.As(err, &header) && exchange.FrameType(header.RecordHeader[0]) != exchange.FrameRefuse:
		return fmt.Errorf("%w: %w", exchange.ErrMalformed, err)
	case errors.As(err, &header):
		return fmt.Errorf("%w (it has none)", exchange.ErrSecret)
	case errors.As(err, &alert):
		return fmt.Errorf("%w: %w", exchange.ErrSecret, err)
	}
	return err
}
