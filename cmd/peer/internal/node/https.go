package node

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
)

// frontDoor is where clients come by TLS, with HTTP/1.1 and HTTP/2.
type frontDoor struct {
	net.Listener
	config atomic.Pointer[tls.Config] // with the certificates as they were read last
}

func newFrontDoor(l net.Listener, certs []tls.Certificate) *frontDoor {
	d := &frontDoor{Listener: l}
	d.use(certs)
	return d
}

func (d *frontDoor) use(certs []tls.Certificate) {
	d.config.Store(&tls.Config{Certificates: certs, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12})
}

// serve makes server, which knows how to answer, one for this door.
func (d *frontDoor) serve(server *http.Server) error {
	server.TLSConfig = &tls.Config{
		NextProtos:         []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return d.config.Load(), nil },
		GetCertificate:     func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &d.config.Load().Certificates[0], nil },
	}
	return server.ServeTLS(d.Listener, "", "")
}

// SameHTTPS reports whether two configurations have the same certificates for clients.
func SameHTTPS(a, b config.Config) bool {
	if a.HTTPS == nil || b.HTTPS == nil || len(a.HTTPS.Certificates) != len(b.HTTPS.Certificates) {
		return a.HTTPS == b.HTTPS
	}
	for i, c := range a.HTTPS.Certificates {
		if !bytes.Equal(c.Certificate[0], b.HTTPS.Certificates[i].Certificate[0]) {
			return false
		}
	}
	return true
}
