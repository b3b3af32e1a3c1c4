package config

import (
	"crypto/tls"
	"errors"
	"fmt"
)

// HTTPS is how clients come by TLS.
type HTTPS struct {
	Listen       string // host:port; port 0 = any free one
	Certificates []tls.Certificate
}

// https loads the certificates towards clients: as many files as keys.
func (c *checker) https(s *Settings) *HTTPS {
	if s.HTTPS == "" {
		if len(s.HTTPSCert) > 0 {
			c.fail("https-cert", "", errors.New("goes with --https, the address that it is for"))
		}
		return nil
	}
	c.fail("https", s.HTTPS, checkAddr(s.HTTPS, "443", true))
	out := &HTTPS{Listen: s.HTTPS}
	if len(s.HTTPSCert) == 0 || len(s.HTTPSCert) != len(s.HTTPSKey) {
		c.fail("https-cert", "", fmt.Errorf("is needed as often as --https-key, once at least: there are %d and %d", len(s.HTTPSCert), len(s.HTTPSKey)))
		return out
	}
	for i, file := range s.HTTPSCert {
		cert, err := tls.LoadX509KeyPair(file, s.HTTPSKey[i])
		if err != nil {
			c.fail("https-cert", file, fmt.Errorf("cannot be used: %w", err))
		}
		out.Certificates = append(out.Certificates, cert)
	}
	return out
}
