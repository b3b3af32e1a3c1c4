package gossip

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"math/big"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// MinSecret is the length in bytes of the shortest secret.
const MinSecret = 16

// keys are everything that a cluster derives from its secret (PROTOCOL.md 2.1).
// Without a secret only the label is set.
type keys struct {
	label  string
	packet []byte      // of memberlist's AES-256-GCM
	stream *tls.Config // for both ends; nil means plain streams
}

const plainLabel = "sc1"

func deriveKeys(secret []byte) (keys, error) {
	if len(secret) == 0 {
		return keys{label: plainLabel}, nil
	}
	derive := func(info string, n int) []byte {
		// Key fails only for lengths beyond the hash's limit.
		k, err := hkdf.Key(sha256.New, secret, []byte("summarycache"), info, n)
		if err != nil {
			panic(err)
		}
		return k
	}
	identity := ed25519.NewKeyFromSeed(derive("stream identity 1", ed25519.SeedSize))
	stream, err := streamTLS(identity)
	if err != nil {
		return keys{}, err
	}
	return keys{
		label:  plainLabel + "-" + hex.EncodeToString(derive("gossip label 1", 4)),
		packet: derive("gossip packet key 1", 32),
		stream: stream,
	}, nil
}

// streamTLS lets only holders of the same identity talk: the handshake proves
// that the other end has the private key, and the check that it is this key.
func streamTLS(identity ed25519.PrivateKey) (*tls.Config, error) {
	public := identity.Public().(ed25519.PublicKey)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "summarycache"},
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
	// Ed25519 signs deterministically, so every peer makes the same certificate.
	der, err := x509.CreateCertificate(nil, template, template, public, identity)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: identity}},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // there is no authority to verify by; the key itself is compared
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return exchange.ErrSecret
			}
			theirs, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			if !ok || !bytes.Equal(theirs, public) {
				return exchange.ErrSecret
			}
			return nil
		},
	}, nil
}

// secretError finds out whether a failed handshake means that the other side
// has another secret, or none.
func secretError(err error) error {
	var alert tls.AlertError
	var header tls.RecordHeaderError
	if errors.As(err, &header) || errors.As(err, &alert) {
		return errors.Join(exchange.ErrSecret, err)
	}
	return err
}
