package node

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
)

// A frontDoor is the TLS listener for clients, with HTTP/1.1 and HTTP/2.
type frontDoor struct {
	net.Listener
	config atomic.Pointer[tls.Config] // with the latest certificates
}

func newFrontDoor(l net.Listener, certs []tls.Certificate) *frontDoor {
	d := &frontDoor{Listener: l}
	d.use(certs)
	return d
}

// use sets the certificates.
func (d *frontDoor) use(certs []tls.Certificate) {
	d.config.Store(&tls.Config{Certificates: certs, NextProtos: []string{"h2", "http/1.1"},
		MinVersion: tls.VersionTLS12})
}

// differs reports whether other certificates are in use.
func (d *frontDoor) differs(certs []tls.Certificate) bool {
	return !slices.EqualFunc(d.config.Load().Certificates, certs, func(a, b tls.Certificate) bool { return bytes.Equal(a.Certificate[0], b.Certificate[0]) })
}

// serve serves this listener.
func (d *frontDoor) serve(server *http.Server) error {
	server.TLSConfig = &tls.Config{
		NextProtos:         []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return d.config.Load(), nil },
		GetCertificate:     func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &d.config.Load().Certificates[0], nil },
	}
	return server.ServeTLS(d.Listener, "", "")
}
