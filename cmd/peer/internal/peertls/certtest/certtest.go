// Package certtest makes certificates for tests: an authority, and peers' files. The keys are of a kind that browsers take.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority signs certificates.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	File string // its certificate, PEM
}

// New makes an authority that is valid for a day. Its files are removed at the end of the test.
func New(t testing.TB) *Authority { return For(t, 24*time.Hour) }

// For makes an authority that is valid for so long.
func For(t testing.TB, life time.Duration) *Authority {
	a := &Authority{t: t, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(life), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.File, _ = a.write("ca", a.cert, a.key)
	return a
}

// Peer makes a certificate for a name, valid until then, and returns its file and that of its key.
func (a *Authority) Peer(name string, until time.Time) (cert, key string) {
	a.t.Helper()
	own, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return a.write(name, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, own)
}

// write signs c, and writes it and its key to files.
func (a *Authority) write(name string, c *x509.Certificate, own *ecdsa.PrivateKey) (cert, key string) {
	dir := a.t.TempDir()
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	signed, err1 := x509.CreateCertificate(rand.Reader, c, a.cert, own.Public(), a.key)
	raw, err2 := x509.MarshalPKCS8PrivateKey(own)
	err3 := os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600)
	err4 := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}
