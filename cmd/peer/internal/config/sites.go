package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/file"
	"github.com/summarycache/summarycache/cmd/peer/internal/peertls"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
)

// A site is a site in the file, from which a [proxy.Site] is made.
type site struct {
	Name       string        `name:"name" type:"host"`
	Hosts      []string      `name:"hosts" type:"host" lower:"host"`
	Path       string        `name:"path" type:"prefix"`
	Origins    []*url.URL    `name:"origins" type:"origin"`
	Balance    string        `name:"balance" type:"choice" oneof:"order,load"`
	Check      string        `name:"check" type:"prefix"`
	OriginHost string        `name:"origin-host" type:"host"`
	CA         string        `name:"ca"`
	Cert       string        `name:"cert"`
	Key        string        `name:"key"`
	SNI        string        `name:"sni"`
	Connect    time.Duration `name:"connect-timeout" type:"time" min:"10ms" max:"24h"`
	FirstByte  time.Duration `name:"first-byte-timeout" type:"time" min:"10ms" max:"24h"`
	SliceFrom  int64         `name:"slice-from" type:"size"` // 0 = never; negative = the default
}

func (c *checker) readSites(items []section) {
	if len(items) > 0 && c.Origin != nil {
		c.fail("origin", c.Origin.String(),
			errors.New("cannot be combined with sites: make it one of the sites, without hosts, to serve all "+
				"other hosts"))
	}
	places := make(map[string]int)
	for _, item := range items {
		s := site{SliceFrom: -1}
		c.fill(item, &s)
		taken := func(key, place, value string) {
			if line, ok := places[place]; ok {
				c.failKey(item, key, value, fmt.Errorf("is also used by the site in line %d", line))
			}
			places[place] = item.line
		}
		for i, h := range s.Hosts {
			if strings.HasSuffix(h, ":80") || strings.HasSuffix(h, ":443") {
				c.failKey(item, "hosts", h, errors.New("must not have this port, since requests omit it"))
			}
			s.Hosts[i] = canonical.Authority("", h)
			h = s.Hosts[i]
			taken("hosts", "host "+h+strings.TrimSuffix(s.Path, "/"), h)
		}
		if len(s.Hosts) == 0 {
			taken("hosts", "others"+strings.TrimSuffix(s.Path, "/"), "")
		}
		if s.Name = canonical.Authority("", s.Name); s.Name != "" {
			taken("name", "name "+s.Name, s.Name)
		}
		if len(item.entries["origins"].values) == 0 {
			c.errs = append(c.errs, fmt.Errorf("%s:%d: the site has no origins", c.File, item.line))
		}
		for _, o := range s.Origins {
			if err := c.checkOrigin(o); err != nil {
				c.failKey(item, "origins", o.String(), err)
			}
		}
		switch { // here, 0 is the default
		case s.SliceFrom < 0:
			s.SliceFrom = 0
		case s.SliceFrom == 0:
			s.SliceFrom = -1
		}
		c.Sites = append(c.Sites, proxy.Site{
			Name: s.Name, Hosts: s.Hosts, Path: s.Path, Origins: s.Origins, Balance: s.Balance == "load",
			Check: s.Check,
			Host:  s.OriginHost, TLS: c.originTLS(item, &s), ConnectTimeout: s.Connect, FirstByteTimeout: s.FirstByte,
			SliceFrom: s.SliceFrom,
		})
	}
}

// originTLS returns the configuration for TLS with the site's origins. The client certificate is
// read at each handshake, so that a renewed one needs no reload.
func (c *checker) originTLS(item section, s *site) *tls.Config {
	if s.CA+s.Cert+s.Key+s.SNI == "" {
		return nil
	}
	t := &tls.Config{ServerName: s.SNI, MinVersion: tls.VersionTLS12}
	if s.CA != "" {
		pem, err := file.Text(s.CA, peertls.MaxPEM)
		t.RootCAs = x509.NewCertPool()
		switch {
		case err != nil:
			c.failKey(item, "ca", s.CA, errors.New("cannot be read: "+reason(err)))
		case !t.RootCAs.AppendCertsFromPEM(pem):
			c.failKey(item, "ca", s.CA, errors.New("holds no certificate"))
		}
	}
	switch {
	case (s.Cert == "") != (s.Key == ""):
		c.failKey(item, "cert", s.Cert, errors.New("needs a key, and a key needs cert"))
	case s.Cert != "":
		load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, err := peertls.KeyPair(s.Cert, s.Key)
			return &cert, err
		}
		if _, err := load(nil); err != nil {
			c.failKey(item, "cert", s.Cert, fmt.Errorf("cannot be used: %w", err))
		}
		t.GetClientCertificate = load
	}
	return t
}
