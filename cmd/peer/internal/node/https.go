package node

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
)

// An httpsListener is the TLS listener for clients, with HTTP/1.1 and HTTP/2.
type httpsListener struct {
	net.Listener
	config atomic.Pointer[tls.Config] // with the latest certificates
}

func newHTTPSListener(l net.Listener, certs []tls.Certificate) *httpsListener {
	d := &httpsListener{Listener: l}
	d.use(certs)
	return d
}

// use sets the certificates.
func (d *httpsListener) use(certs []tls.Certificate) {
	d.config.Store(&tls.Config{Certificates: certs, NextProtos: []string{"h2", "http/1.1"},
		MinVersion: tls.VersionTLS12})
}

// differs reports whether other certificates are in use.
func (d *httpsListener) differs(certs []tls.Certificate) bool {
	return !slices.EqualFunc(d.config.Load().Certificates, certs, func(a, b tls.Certificate) bool { return bytes.Equal(a.Certificate[0], b.Certificate[0]) })
}

// serve serves this listener.
func (d *httpsListener) serve(server *http.Server) error {
	server.TLSConfig = &tls.Config{
		NextProtos:         []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return d.config.Load(), nil },
		GetCertificate:     func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &d.config.Load().Certificates[0], nil },
	}
	return server.ServeTLS(d.Listener, "", "")
}
