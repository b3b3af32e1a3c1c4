package config

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/peertls"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/bloom"
)

const (
	meanObject = 32 << 10 // bytes of disk for an object, by which the store's size determines the digest's
	maxName    = 63       // characters, as in gossip
	maxZone    = 14

	defaultMemory = 64 << 20 // bytes of --memory-size, which fit every limit
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
		c.errs = append(c.errs, &mistake{c.where[setting], value, err.Error(), nil})
	}
}

func (c *checker) check(entries map[string]entry) {
	c.checkName()
	c.readSites(entries["sites"].items)
	c.readRules(entries["rules"].items)
	if len(c.TrustedProxies) > 0 && !c.Reverse() {
		c.fail("trusted-proxies", c.TrustedProxies[0].String(),
			errors.New("is for a reverse proxy: a forward proxy does not forward its clients' addresses"))
	}
	for setting, networks := range map[string][]netip.Prefix{"trusted-proxies": c.TrustedProxies,
		"proxy-protocol": c.ProxyProtocol} {
		for _, p := range networks {
			if p.Bits() == 0 {
				c.fail(setting, p.String(),
					errors.New("trusts everybody: any client could claim another address, host or scheme"))
			}
		}
	}
	c.checkPurge()
	if c.PreserveHost == "on" && c.Origin == nil {
		c.fail("preserve-host", c.PreserveHost,
			errors.New("is for --origin: sites preserve the host unless they have an origin-host"))
	}
	if c.MemoryLimit > 0 && c.MemorySize > max(c.MemoryLimit, defaultMemory) {
		c.fail("memory-size", "", errors.New("is more than --memory-limit"))
	}
	c.checkHTTPS()
	c.checkAddresses()
	c.readSecrets()
	c.readPeerTLS()
	c.findCollector()
	c.checkStore()
	c.checkAccessLog()
	c.checkObjects()
	var err error
	c.AdminToken, err = ReadToken(c.AdminTokenFile)
	c.fail("admin-token-file", c.AdminTokenFile, err)
}

var loopbacks, private = networks("127.0.0.0/8", "::1/128"),
	networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/8", "fd00::/8")

func networks(of ...string) (list []netip.Prefix) {
	for _, p := range of {
		list = append(list, netip.MustParsePrefix(p))
	}
	return list
}

// checkPurge refuses networks from which strangers come by a proxy that hides itself, unless they are given twice.
func (c *checker) checkPurge() {
	for _, p := range c.PurgeClients {
		why := ""
		switch overlaps := p.Overlaps; {
		case p.Bits() < 8:
			why = "is half of the world"
		case slices.ContainsFunc(private, func(all netip.Prefix) bool { return p.Bits() <= all.Bits() && overlaps(all) }):
			why = "is a private network as a whole, with its proxies and containers"
		case slices.ContainsFunc(loopbacks, overlaps):
			why = "is loopback, from where everybody comes who reaches a proxy on this machine: peer purge needs no " +
				"such setting"
		case slices.ContainsFunc(c.TrustedProxies, overlaps):
			why = "has proxies of --trusted-proxies, and so everybody whom they do not name"
		}
		if i := slices.Index(c.PurgeClients, p); why != "" && !slices.Contains(c.PurgeClients[i+1:], p) {
			c.fail("purge-client", p.String(), errors.New(why+"; name the machines that purge, or give it twice"))
		}
	}
}

// checkObjects refuses more objects than other peers take the digest of. If none are given, there are no more than
// that.
func (c *checker) checkObjects() {
	refused := func() error {
		if !(c.FalsePositives > 0 && c.FalsePositives <= 0.5) { // which is refused, too
			return nil
		}
		g, err := digest.GeometryFor(c.Objects, c.FalsePositives)
		if err == nil {
			fill, _ := bloom.Predict(g.Bits, g.Hashes, c.Objects)
			err = digest.Limits{}.Accept(g, uint64(fill*float64(g.Bits)))
		}
		return err
	}
	if c.Objects > 0 {
		if err := refused(); err != nil {
			c.fail("objects", fmt.Sprint(c.Objects),
				fmt.Errorf("is too many: use a higher --false-positives, since other peers refuse its digest: %w", err))
		}
		return
	}
	for c.Objects = max(uint64(c.StoreSize)/meanObject, 1000); c.Objects > 1000 && refused() != nil; {
		c.Objects -= c.Objects / 64
	}
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
	c.checkWord("cluster", c.Cluster, maxName)
	c.checkWord("zone", c.Zone, maxZone)
	if c.ZoneCost > 0 && c.Zone == "" {
		c.fail("zone-cost", c.ZoneCost.String(), errors.New("needs --zone: without it no peer is in another zone"))
	}
}

// checkWord accepts the characters that are allowed in Cache-Status, in Via and in a name in gossip.
func (c *checker) checkWord(setting, word string, most int) {
	if word != "" && strings.Trim(word, ".") == "" {
		c.fail(setting, word, errors.New("has nothing but dots"))
	}
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
		c.fail("https-cert", "", fmt.Errorf("must be given as often as --https-key, at least once: there are %d and %d",
			certs, keys))
		return
	}
	for i, file := range c.HTTPSCert {
		cert, err := peertls.KeyPair(file, c.HTTPSKey[i])
		if err != nil {
			c.fail("https-cert", file, fmt.Errorf("cannot be used: %w", err))
		}
		c.Certificates = append(c.Certificates, cert)
	}
}
