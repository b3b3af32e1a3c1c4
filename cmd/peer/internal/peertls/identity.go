package peertls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/file"
)

// Files are the names of PEM files: a peer's certificate, its key, and the certificates of the
// authority that all peers trust.
type Files struct{ Cert, Key, CA string }

// An Identity is a peer's certificate and the authority that it trusts. It is safe for concurrent
// use, also with [Identity.Renew].
type Identity struct {
	now atomic.Pointer[material]
}

type material struct {
	cert  tls.Certificate
	roots *x509.CertPool
}

// Load reads the files of the peer of that name. It refuses a certificate that other peers would
// refuse: one for another name, an expired one, or one that the authority did not sign. The error
// joins all mistakes.
func Load(name string, f Files) (*Identity, error) {
	i := new(Identity)
	m, err := read(name, f)
	i.now.Store(m)
	return i, err
}

// Renew adopts the certificates of an Identity of the same peer that was loaded later. If either is
// nil, Renew does nothing.
func (i *Identity) Renew(later *Identity) {
	if i != nil && later != nil {
		i.now.Store(later.now.Load())
	}
}

// Differs reports whether an Identity of the same peer that was loaded later has other certificates.
func (i *Identity) Differs(later *Identity) bool {
	if i == nil || later == nil {
		return false
	}
	was, now := i.now.Load(), later.now.Load()
	return !slices.EqualFunc(was.cert.Certificate, now.cert.Certificate, bytes.Equal) || !was.roots.Equal(now.roots)
}

// Until returns when the first certificate of this peer's chain expires.
func (i *Identity) Until() (until time.Time) {
	for n, c := range certificates(i.now.Load().cert) {
		if n == 0 || c.NotAfter.Before(until) {
			until = c.NotAfter
		}
	}
	return until
}

func read(name string, f Files) (*material, error) {
	m := &material{roots: x509.NewCertPool()}
	var errs []error
	pem, err := file.Text(f.CA, MaxPEM)
	switch {
	case err != nil:
		errs = append(errs, err)
	case !m.roots.AppendCertsFromPEM(pem):
		errs = append(errs, fmt.Errorf("%s holds no certificate in PEM", f.CA))
	}
	if m.cert, err = KeyPair(f.Cert, f.Key); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	chain := certificates(m.cert)
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if err := verify(chain, m.roots, usage, name); err != nil {
			return nil, fmt.Errorf("other peers would refuse %s: %w", f.Cert, err)
		}
	}
	return m, nil
}

// MaxPEM is how many bytes a file of certificates or of a key may have.
const MaxPEM = 4 << 20

// KeyPair reads the files of a certificate, with those between it and the authority, and of its key, in PEM.
func KeyPair(cert, key string) (tls.Certificate, error) {
	c, err := file.Text(cert, MaxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	k, err := file.Text(key, MaxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(c, k)
}

// certificates parses a chain that package tls has accepted.
func certificates(c tls.Certificate) (chain []*x509.Certificate) {
	for _, der := range c.Certificate {
		if cert, err := x509.ParseCertificate(der); err == nil {
			chain = append(chain, cert)
		}
	}
	return chain
}

// verify checks that a chain leads to the roots, and that its first certificate is for name; "" = any.
func verify(chain []*x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage, name string) error {
	if len(chain) == 0 {
		return errors.New("no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		DNSName: name, Roots: roots, Intermediates: between, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{usage},
	})
	return err
}

// Server returns the configuration for incoming connections.
func (i *Identity) Server() *tls.Config {
	c := i.config(x509.ExtKeyUsageClientAuth, "")
	c.ClientAuth = tls.RequireAnyClientCert // VerifyConnection verifies it
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &i.now.Load().cert, nil }
	return c
}

// Client returns the configuration for connections to the peer of that name.
func (i *Identity) Client(peer string) *tls.Config {
	c := i.config(x509.ExtKeyUsageServerAuth, peer)
	c.ServerName, c.InsecureSkipVerify = peer, true // VerifyConnection verifies it
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &i.now.Load().cert, nil }
	return c
}

// config is what both ends have: the other one is verified by the current roots, in each connection, since a resumed
// session would not be.
func (i *Identity) config(usage x509.ExtKeyUsage, name string) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{"http/1.1"},
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			return verify(s.PeerCertificates, i.now.Load().roots, usage, name)
		},
	}
}
