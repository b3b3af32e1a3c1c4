package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

const (
	meanObject = 32 << 10 // bytes of disk for an object, by which the store's size determines the digest's
	maxName    = 63       // characters, as in gossip
	maxZone    = 14

	leastMemory = 32 << 20 // bytes: with less, the parts of a peer have too little for some requests each
)

// A checker makes the checks that need files or more than one setting, sets the fields of a
// [Config] that are not settings, and collects mistakes.
type checker struct {
	*Config
	where map[string]string // the place of each setting, for messages
	wrong map[string]bool   // settings whose text is malformed
	errs  []error
}

func (c *checker) fail(setting, value string, err error) {
	if err != nil {
		c.errs = append(c.errs, &mistake{c.where[setting], value, err.Error()})
	}
}

func (c *checker) check(entries map[string]entry) {
	c.checkName()
	c.readSites(entries["sites"].items)
	c.readRules(entries["rules"].items)
	if len(c.TrustedProxies) > 0 && !c.Reverse() {
		c.fail("trusted-proxies", c.TrustedProxies[0].String(), errors.New("is for a reverse proxy: a forward proxy does not forward its clients' addresses"))
	}
	for setting, networks := range map[string][]netip.Prefix{"trusted-proxies": c.TrustedProxies, "proxy-protocol": c.ProxyProtocol} {
		for _, p := range networks {
			if p.Bits() == 0 {
				c.fail(setting, p.String(), errors.New("trusts everybody: any client could claim another address, host or scheme"))
			}
		}
	}
	if c.PreserveHost == "on" && c.Origin == nil {
		c.fail("preserve-host", c.PreserveHost, errors.New("is for --origin: sites preserve the host unless they have an origin-host"))
	}
	if c.MemoryLimit > 0 && c.MemoryLimit < leastMemory {
		c.fail("memory-limit", fmt.Sprint(c.MemoryLimit), errors.New("is too little: a peer needs at least 32MiB"))
	}
	c.checkHTTPS()
	c.checkAddresses()
	c.readSecrets()
	c.readPeerTLS()
	c.findCollector()
	c.checkStore()
	c.checkDigests()
	c.checkAccessLog()
	if c.Objects == 0 {
		c.Objects = max(uint64(c.StoreSize)/meanObject, 1000)
	}
	var err error
	c.AdminToken, err = ReadToken(c.AdminTokenFile)
	c.fail("admin-token-file", c.AdminTokenFile, err)
}

func (c *checker) checkName() {
	if c.Name == "" {
		var err error
		if c.Name, err = os.Hostname(); err != nil {
			c.fail("name", "", fmt.Errorf("is needed: the host has no name: %w", err))
			return
		}
	}
	c.checkWord("name", c.Name, maxName)
	c.checkWord("zone", c.Zone, maxZone)
	if c.ZoneCost > 0 && c.Zone == "" {
		c.fail("zone-cost", c.ZoneCost.String(), errors.New("needs --zone: without it no peer is in another zone"))
	}
}

// checkWord accepts the characters that are allowed in Cache-Status, in Via and in a name in gossip.
func (c *checker) checkWord(setting, word string, most int) {
	for _, r := range word {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r) {
			c.fail(setting, word, fmt.Errorf("contains %q: want letters, digits, dots, dashes and underscores", r))
			return
		}
	}
	if len(word) > most {
		c.fail(setting, word, fmt.Errorf("is longer than %d characters", most))
	}
}

// checkHTTPS loads the certificates for clients.
func (c *checker) checkHTTPS() {
	switch certs, keys := len(c.HTTPSCert), len(c.HTTPSKey); {
	case c.HTTPSListen == "":
		if certs > 0 && !c.wrong["https"] {
			c.fail("https-cert", "", errors.New("needs --https, the address to listen on"))
		}
		return
	case certs == 0 || certs != keys:
		c.fail("https-cert", "", fmt.Errorf("must be given as often as --https-key, at least once: there are %d and %d", certs, keys))
		return
	}
	for i, file := range c.HTTPSCert {
		cert, err := tls.LoadX509KeyPair(file, c.HTTPSKey[i])
		if err != nil {
			c.fail("https-cert", file, fmt.Errorf("cannot be used: %w", err))
		}
		c.Certificates = append(c.Certificates, cert)
	}
}
