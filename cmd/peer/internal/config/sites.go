package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
)

// siteKeys are the keys of a site; those that take a list are mapped to true.
var siteKeys = map[string]bool{"name": false, "hosts": true, "path": false, "origins": true, "balance": false, "check": false, "origin-host": false,
	"ca": false, "cert": false, "key": false, "sni": false, "connect-timeout": false, "first-byte-timeout": false}

// siteOrder is in which order they are shown, those that are not named last.
var siteOrder = []string{"name", "hosts", "path", "origins"}

// Reverse reports whether the peer is a reverse proxy.
func (c *Config) Reverse() bool { return c.Origin != nil || len(c.Sites) > 0 }

func (c *checker) sites(items []section, origin string) (sites []proxy.Site) {
	if len(items) > 0 && origin != "" {
		c.fail("origin", origin, errors.New("goes without sites: let one of them, without hosts, be for all others"))
	}
	places := make(map[string]int)
	for _, item := range items {
		s := c.site(item)
		is := &sectionReader{c, item}
		taken := func(key, place, value string) {
			if line, ok := places[place]; ok {
				is.fail(key, item.entries[key], value, fmt.Errorf("is that of the site in line %d too", line))
			}
			places[place] = item.line
		}
		for _, h := range s.Hosts {
			taken("hosts", "host "+h+strings.TrimSuffix(s.Path, "/"), h)
		}
		if len(s.Hosts) == 0 {
			taken("hosts", "others"+strings.TrimSuffix(s.Path, "/"), "")
		}
		if s.Name != "" {
			taken("name", "name "+s.Name, s.Name)
		}
		sites = append(sites, s)
	}
	return sites
}

func (c *checker) site(item section) proxy.Site {
	is := &sectionReader{c, item}
	s := proxy.Site{Hosts: is.lower("hosts"), Balance: is.oneOf("balance", "order", "load") == "load"}
	s.Name, _ = is.text("name")
	s.Path, _ = is.text("path")
	s.Check, _ = is.text("check")
	s.Host, _ = is.text("origin-host")
	for _, h := range append(slices.Clone(s.Hosts), s.Name, s.Host) {
		if u, err := url.Parse("http://" + strings.TrimPrefix(h, "*.") + "/"); h != "" && (err != nil || u.Host != strings.TrimPrefix(h, "*.") || u.Path != "/" || u.User != nil) {
			is.fail("hosts", item.entries["hosts"], h, errors.New("is no host: want a name such as shop.example or *.example.com"))
		}
	}
	for _, h := range s.Hosts {
		if strings.HasSuffix(h, ":80") || strings.HasSuffix(h, ":443") {
			is.fail("hosts", item.entries["hosts"], h, errors.New("goes without this port, which requests do not name"))
		}
	}
	for _, key := range []string{"path", "check"} {
		if p, ok := is.text(key); ok && (!strings.HasPrefix(p, "/") || strings.ContainsAny(p, "*?#")) {
			is.fail(key, item.entries[key], p, errors.New("is no path: want one that begins with /, without * and query"))
		}
	}
	for _, text := range is.list("origins") {
		u, err := originURL(text)
		is.fail("origins", item.entries["origins"], text, err)
		if err == nil {
			s.Origins = append(s.Origins, u)
		}
	}
	if len(item.entries["origins"].values) == 0 {
		c.errs = append(c.errs, fmt.Errorf("%s:%d: the site has no origins", c.file, item.line))
	}
	s.ConnectTimeout, s.FirstByteTimeout = is.timeout("connect-timeout"), is.timeout("first-byte-timeout")
	s.TLS = is.tls()
	return s
}

func (s *sectionReader) timeout(key string) time.Duration {
	v, ok := s.text(key)
	if !ok {
		return 0
	}
	d, err := deadline(v)
	s.fail(key, s.item.entries[key], v, err)
	return d
}

// tls is how the site's origins are trusted, and trust this peer. The client certificate
// is read at each handshake: one that is renewed needs no reload.
func (s *sectionReader) tls() *tls.Config {
	ca, _ := s.text("ca")
	cert, _ := s.text("cert")
	key, _ := s.text("key")
	sni, _ := s.text("sni")
	if ca+cert+key+sni == "" {
		return nil
	}
	t := &tls.Config{ServerName: sni, MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		t.RootCAs = x509.NewCertPool()
		switch {
		case err != nil:
			s.fail("ca", s.item.entries["ca"], ca, errors.New("cannot be read: "+reason(err)))
		case !t.RootCAs.AppendCertsFromPEM(pem):
			s.fail("ca", s.item.entries["ca"], ca, errors.New("holds no certificate"))
		}
	}
	switch {
	case (cert == "") != (key == ""):
		s.fail("cert", s.item.entries["cert"], cert, errors.New("goes with a key, and a key with cert"))
	case cert != "":
		if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
			s.fail("cert", s.item.entries["cert"], cert, fmt.Errorf("cannot be used: %w", err))
		}
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(cert, key)
			return &c, err
		}
	}
	return t
}
