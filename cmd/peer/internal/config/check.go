package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// meanObject is what an object is taken to need on disk when the digest is
// planned from the store's size.
const meanObject = 32 << 10

const maxName = 63 // characters, as in gossip

// A checker collects mistakes.
type checker struct {
	sources map[string]Source
	file    string // of the configuration
	errs    []error
}

func (c *checker) fail(setting, value string, err error) {
	if err != nil {
		c.errs = append(c.errs, &Mistake{c.sources[setting].Where, value, err.Error()})
	}
}

func check(s *Settings, sources map[string]Source, lists map[string]entry) (Config, []error) {
	c := &checker{sources: sources, file: s.Config}
	out := Config{
		Name: c.name(s.Name), JoinTimeout: c.duration("join-timeout", s.JoinTimeout),
		Origin:    c.origin(s.Origin),
		StoreSize: c.size("store-size", s.StoreSize, 1<<20), MemorySize: c.size("memory-size", s.MemorySize, 0),
		Scrub:          c.duration("scrub", s.Scrub),
		SiblingMaxAge:  c.duration("sibling-max-age", s.SiblingMaxAge),
		SiblingCompare: c.count("sibling-compare", s.SiblingCompare),
		FalsePositives: c.falsePositives(s.FalsePositives), Publish: c.duration("publish", s.Publish),
		LogLevel: c.logLevel(s.LogLevel), LogJSON: c.format("log-format", s.LogFormat, "text"), Drain: c.duration("drain", s.Drain),
		ConnectTimeout: c.timeout("connect-timeout", s.ConnectTimeout), FirstByteTimeout: c.timeout("first-byte-timeout", s.FirstByteTimeout),
		BetweenBytesTimeout: c.timeout("between-bytes-timeout", s.BetweenBytesTimeout),
		ClientBodyTimeout:   c.timeout("client-body-timeout", s.ClientBodyTimeout), SendTimeout: c.timeout("send-timeout", s.SendTimeout),
	}
	out.Sites = c.sites(lists["sites"].items, s.Origin)
	out.TrustedProxies = c.trustedProxies(s.TrustedProxies, out.Reverse())
	out.lists = map[string][]string{"rules": lines(lists["rules"].items, ruleMatchers), "sites": lines(lists["sites"].items, siteOrder)}
	if len(out.Sites) > 0 {
		c.rulesOfSites(lists["rules"].items, out.Sites)
	}
	out.Rules = c.rules(lists["rules"].items, s.DefaultTTL, s.Compress)
	out.HTTPS = c.https(s)
	out.AccessLog, out.AccessLogJSON = c.accessLog(s.AccessLog), c.format("access-log-format", s.AccessLogFormat, "combined")
	out.Secret, out.AcceptSecrets = c.secrets(s.SecretFile)
	if info, err := os.Stat(s.SecretFile); err == nil {
		out.SecretShared = info.Mode().IsRegular() && info.Mode()&0o007 != 0 && runtime.GOOS != "windows"
	}
	out.PeerTLS = c.peerTLS(s, out.Name)
	c.traces(s.OTLP, &out)
	c.addresses(s, &out)
	out.Objects = c.objects(s.Objects, out.StoreSize)
	out.Store = c.store(s.Store, out.Name)
	out.Digests = c.digests(s.Digests, out.Store)
	out.IndexSize = c.size("index-size", s.IndexSize, 0)
	out.PurgeClients = c.clients("purge-client", s.PurgeClient)
	out.ProxyClients, out.ConnectPorts = c.clients("proxy-client", s.ProxyClient), c.connectPorts(s.ConnectPort)
	out.AdminHosts, out.Profiles = s.AdminHost, c.onOff("profiles", s.Profiles)
	token, err := ReadToken(s.AdminTokenFile)
	c.fail("admin-token-file", s.AdminTokenFile, err)
	out.AdminToken = token
	out.MaxConnections = c.count("max-connections", s.MaxConnections)
	if out.Publish != 0 && out.Publish < 10*time.Millisecond || out.Publish > time.Hour {
		c.fail("publish", s.Publish, errors.New("is not between 10ms and 1h"))
	}
	return out, c.errs
}

func (c *checker) name(s string) string {
	if s == "" {
		host, err := os.Hostname()
		if err != nil {
			c.fail("name", "", fmt.Errorf("is needed: the host has no name: %w", err))
			return ""
		}
		s = host
	}
	// What both a token of Cache-Status and Via and a name in gossip can hold.
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r) {
			c.fail("name", s, fmt.Errorf("holds %q: want letters, digits, dots, dashes and underscores", r))
			return s
		}
	}
	if len(s) > maxName {
		c.fail("name", s, fmt.Errorf("is longer than %d characters", maxName))
	}
	return s
}

func (c *checker) duration(setting, s string) time.Duration {
	d, err := parseDuration(s)
	c.fail(setting, s, err)
	return d
}

// timeout reads a deadline. There is none that is none: every wait ends.
func (c *checker) timeout(setting, s string) time.Duration {
	d, err := deadline(s)
	c.fail(setting, s, err)
	return d
}

func deadline(s string) (time.Duration, error) {
	d, err := parseDuration(s)
	if err == nil && (d < 10*time.Millisecond || d > 24*time.Hour) {
		err = errors.New("is not between 10ms and 24h")
	}
	return d, err
}

func (c *checker) size(setting, s string, least int64) int64 {
	n, err := ParseSize(s)
	switch {
	case err != nil:
	case n < least:
		err = fmt.Errorf("is less than %d bytes", least)
	case n >= 1<<50:
		err = errors.New("is more than the sizes that there are: want less than 1024TiB")
	}
	c.fail(setting, s, err)
	return n
}

func (c *checker) origin(s string) *url.URL {
	if s == "" {
		return nil
	}
	u, err := originURL(s)
	c.fail("origin", s, err)
	return u
}

// originURL reads the address of an origin.
func originURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("is no URL: " + err.(*url.Error).Err.Error())
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("is no http or https URL, such as http://127.0.0.1:8080")
	case u.Host == "" || u.Hostname() == "":
		return nil, errors.New("has no host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, errors.New("may have a path but no user, query or fragment")
	}
	return u, nil
}

// trustedProxies reads networks, each as a prefix or a single address.
func (c *checker) trustedProxies(list []string, reverse bool) (out []netip.Prefix) {
	for _, s := range list {
		p, err := parsePrefix(s)
		switch {
		case err != nil:
			c.fail("trusted-proxies", s, errors.New("is no network: want one such as 10.0.0.0/8 or 10.0.0.9"))
		case p.Masked() != p:
			c.fail("trusted-proxies", s, fmt.Errorf("has bits behind its prefix: did you mean %s?", p.Masked()))
		case !reverse:
			c.fail("trusted-proxies", s, errors.New("is for a reverse proxy: a forward proxy tells origins nothing of its clients"))
			return nil
		}
		out = append(out, p)
	}
	return out
}

func (c *checker) objects(s string, storeSize int64) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > 1e10 {
		c.fail("objects", s, errors.New("is no whole number between 0 and 10000000000"))
		return 0
	}
	if n == 0 {
		n = max(uint64(storeSize)/meanObject, 1000)
	}
	return n
}

func (c *checker) count(setting, s string) int {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > 1e6 {
		c.fail(setting, s, errors.New("is no whole number between 0 and 1000000"))
	}
	return int(n)
}

func (c *checker) falsePositives(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 1e-9 && f <= 0.5) {
		c.fail("false-positives", s, errors.New("is no number between 1e-9 and 0.5"))
	}
	return f
}

func (c *checker) logLevel(s string) (level slog.Level) {
	levels := []string{"debug", "info", "warn", "error"}
	if !slices.Contains(levels, s) {
		c.fail("log-level", s, errors.New("is none of debug, info, warn and error"+didYouMean(s, levels)))
		return level
	}
	c.fail("log-level", s, level.UnmarshalText([]byte(s)))
	return level
}

// format reads whether lines are JSON and not the plain format.
func (c *checker) format(setting, s, plain string) bool {
	if s != plain && s != "json" {
		c.fail(setting, s, fmt.Errorf("is neither %s nor json%s", plain, didYouMean(s, []string{plain, "json"})))
	}
	return s == "json"
}

func didYouMean(s string, candidates []string) string {
	if near := Nearest(strings.ToLower(s), candidates); near != "" {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}
