package secrets

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// A Ring has the secrets that a node accepts, the one that it uses first, and the name of its cluster, to which all
// keys are bound. It is immutable. A node without a secret has a ring without any.
type Ring struct {
	Cluster string // may be empty
	mark    []byte // with which packets begin; nil if there is a secret or no name
	Secrets []*Secret
	Stream  *tls.Config // for both ends; nil means plain streams
}

// New derives the keys of a node in a cluster of a name that uses primary and accepts the others too.
func New(cluster string, primary []byte, accept [][]byte) (*Ring, error) {
	if len(primary) == 0 {
		if len(accept) > 0 {
			return nil, fmt.Errorf("secrets to accept, but none to use")
		}
		r := &Ring{Cluster: cluster}
		if cluster != "" {
			sum := sha256.Sum256([]byte(cluster))
			r.mark = append([]byte{MarkedByte}, sum[:markBytes-1]...)
		}
		return r, nil
	}
	r := &Ring{Cluster: cluster}
	for _, b := range append([][]byte{primary}, accept...) {
		if len(b) < Min {
			return nil, fmt.Errorf("secret of %d bytes: want at least %d", len(b), Min)
		}
		s, err := derive(b, cluster)
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
		VerifyConnection:       r.Check, // at the end that accepts: see Dialling
	}
}

// Dialling returns the configuration of the end that dials. It calls Check after the handshake, when the other end has
// been shown the key and the cluster's name of this one: so both ends can say what differs.
func (r *Ring) Dialling() *tls.Config {
	c := r.Stream.Clone()
	c.VerifyConnection = nil
	return c
}

// Check returns an error if the other end of a stream has not proved to have a secret of this cluster.
func (r *Ring) Check(s tls.ConnectionState) error {
	if r.Accepts(Shown(s)) {
		return nil
	}
	theirs := ""
	if len(s.PeerCertificates) > 0 {
		theirs = strings.Join(s.PeerCertificates[0].Subject.Organization, "")
	}
	if theirs != r.Cluster && (theirs == "" || exchange.ValidName(theirs)) {
		return &ClusterError{r.Cluster, theirs}
	}
	return exchange.ErrSecret
}

// A ClusterError says that two peers are not of one cluster. It wraps exchange.ErrCluster.
type ClusterError struct{ Ours, Theirs string }

func (e *ClusterError) Error() string {
	return fmt.Sprintf("%v: it is of cluster %q, this one of cluster %q", exchange.ErrCluster, e.Theirs, e.Ours)
}

func (e *ClusterError) Unwrap() error { return exchange.ErrCluster }

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

// Packets of a cluster that has a name and no secret begin with a mark: MarkedByte, and the beginning of the SHA-256 of
// the name.
const (
	MarkedByte = 0x30
	markBytes  = 1 + 4 // less than SealBytes
)

// Seal encrypts a packet if there is a secret. Otherwise it marks it as one of this cluster.
func (r *Ring) Seal(packet []byte) []byte {
	if len(r.Secrets) == 0 {
		return slices.Concat(r.mark, packet)
	}
	return r.Secrets[0].packets.seal(packet)
}

// Open returns a copy of the packet in b; nil if it was not sealed under an accepted secret or, without secrets, has
// not the mark of this cluster.
func (r *Ring) Open(b []byte) []byte {
	if len(r.Secrets) == 0 {
		if packet, ok := bytes.CutPrefix(b, r.mark); ok {
			return bytes.Clone(packet)
		}
		return nil
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
