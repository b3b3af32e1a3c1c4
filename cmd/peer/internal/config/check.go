package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/peertls"
)

// meanObject is what an object is taken to need on disk when the digest is
// planned from the store's size.
const meanObject = 32 << 10

const maxName = 63 // characters, as in gossip

// A checker collects mistakes.
type checker struct {
	sources map[string]Source
	errs    []error
}

func (c *checker) fail(setting, value string, err error) {
	if err != nil {
		c.errs = append(c.errs, &Mistake{c.sources[setting].Where, value, err.Error()})
	}
}

func check(s *Settings, sources map[string]Source) (Config, []error) {
	c := &checker{sources: sources}
	out := Config{
		Name: c.name(s.Name), JoinTimeout: c.duration("join-timeout", s.JoinTimeout),
		Origin:    c.origin(s.Origin),
		StoreSize: c.size("store-size", s.StoreSize, 1<<20), MemorySize: c.size("memory-size", s.MemorySize, 0),
		FalsePositives: c.falsePositives(s.FalsePositives), Publish: c.duration("publish", s.Publish),
		LogLevel: c.logLevel(s.LogLevel), LogJSON: c.logFormat(s.LogFormat), Drain: c.duration("drain", s.Drain),
		CollapseWait: c.duration("collapse-wait", s.CollapseWait),
	}
	out.Secret, out.AcceptSecrets = c.secrets(s.SecretFile)
	out.PeerTLS = c.peerTLS(s, out.Name)
	c.traces(s.OTLP, &out)
	c.addresses(s, &out)
	out.Objects = c.objects(s.Objects, out.StoreSize)
	out.Store = c.store(s.Store, out.Name)
	out.Digests = c.digests(s.Digests, out.Store)
	out.IndexSize = c.size("index-size", s.IndexSize, 0)
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

func (c *checker) size(setting, s string, least int64) int64 {
	n, err := ParseSize(s)
	if err == nil && n < least {
		err = fmt.Errorf("is less than %d bytes", least)
	}
	c.fail(setting, s, err)
	return n
}

const (
	minSecret  = 16
	maxSecrets = 4 // that gossip takes
	maxSecret  = 4 << 10
)

// secrets reads the cluster's secrets, one a line: the first is used, the others
// are accepted. Empty lines are nothing.
func (c *checker) secrets(path string) (use []byte, accept [][]byte) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		c.fail("secret-file", path, errors.New("cannot be read: "+reason(err)))
		return nil, nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		c.fail("secret-file", path, errors.New("cannot be read: "+reason(err)))
		return nil, nil
	case len(data) > maxSecret:
		c.fail("secret-file", path, fmt.Errorf("holds more than %d bytes", maxSecret))
		return nil, nil
	}
	var all [][]byte
	number, where := 0, ""
	for line := range bytes.Lines(data) {
		if number++; number > 1 {
			where = fmt.Sprintf(" in line %d", number)
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) == 0:
			continue
		case len(line) < minSecret:
			c.fail("secret-file", path, fmt.Errorf("holds %d bytes%s, want at least %d: head -c 32 /dev/urandom | base64 > %s", len(line), where, minSecret, path))
		case slices.ContainsFunc(all, func(other []byte) bool { return bytes.Equal(line, other) }):
			c.fail("secret-file", path, fmt.Errorf("holds a secret again%s", where))
		}
		all = append(all, line)
	}
	switch {
	case len(all) == 0:
		c.fail("secret-file", path, fmt.Errorf("holds 0 bytes, want at least %d: head -c 32 /dev/urandom | base64 > %s", minSecret, path))
		return nil, nil
	case len(all) > maxSecrets:
		c.fail("secret-file", path, fmt.Errorf("holds %d secrets, want at most %d, one a line", len(all), maxSecrets))
	}
	return all[0], all[1:]
}

// peerTLS loads the certificates between peers: all three files or none.
func (c *checker) peerTLS(s *Settings, name string) *peertls.Identity {
	files := []struct{ setting, value string }{{"tls-cert", s.TLSCert}, {"tls-key", s.TLSKey}, {"tls-ca", s.TLSCA}}
	given := 0
	for _, f := range files {
		if f.value != "" {
			given++
		}
	}
	if given == 0 {
		return nil
	}
	for _, f := range files {
		if f.value == "" {
			c.fail(f.setting, "", errors.New("is needed: TLS between peers takes --tls-cert, --tls-key and --tls-ca"))
		}
	}
	if given < len(files) {
		return nil
	}
	identity, err := peertls.Load(name, peertls.Files{Cert: s.TLSCert, Key: s.TLSKey, CA: s.TLSCA})
	if err != nil {
		c.fail("tls-cert", s.TLSCert, fmt.Errorf("cannot be used: %w", err))
		return nil
	}
	return identity
}

func (c *checker) origin(s string) *url.URL {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		c.fail("origin", s, errors.New("is no URL: "+err.(*url.Error).Err.Error()))
	case u.Scheme != "http" && u.Scheme != "https":
		c.fail("origin", s, errors.New("is no http or https URL, such as http://127.0.0.1:8080"))
	case u.Host == "" || u.Hostname() == "":
		c.fail("origin", s, errors.New("has no host"))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		c.fail("origin", s, errors.New("may have a path but no user, query or fragment"))
	default:
		return u
	}
	return nil
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

func (c *checker) falsePositives(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 1e-9 && f <= 0.5) {
		c.fail("false-positives", s, errors.New("is no number between 1e-9 and 0.5"))
	}
	return f
}

func (c *checker) logLevel(s string) (level slog.Level) {
	levels := []string{"debug", "info", "warn", "error"}
	for _, l := range levels {
		if s == l {
			c.fail("log-level", s, level.UnmarshalText([]byte(s)))
			return level
		}
	}
	c.fail("log-level", s, errors.New("is none of debug, info, warn and error"+didYouMean(s, levels)))
	return level
}

func (c *checker) logFormat(s string) bool {
	if s != "text" && s != "json" {
		c.fail("log-format", s, errors.New("is neither text nor json"+didYouMean(s, []string{"text", "json"})))
	}
	return s == "json"
}

func didYouMean(s string, candidates []string) string {
	if near := Nearest(strings.ToLower(s), candidates); near != "" {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}

// store checks what can be told of the directory without making it.
func (c *checker) store(dir, name string) string {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			c.fail("store", "", fmt.Errorf("is needed: this user has no cache directory: %w", err))
			return ""
		}
		dir = filepath.Join(cache, "summarycache", name)
	}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		st, err := os.Stat(at)
		switch {
		case err == nil && st.IsDir():
			return dir
		case err == nil && at == filepath.Clean(dir):
			c.fail("store", dir, errors.New("is a file, not a directory"))
			return dir
		case err == nil:
			c.fail("store", dir, fmt.Errorf("cannot be made: %s is a file", at))
			return dir
		case at == filepath.Dir(at):
			c.fail("store", dir, errors.New(reason(err)))
			return dir
		}
	}
}

// digests returns the file that they are kept in. That its directory can't be written
// to is found out when it is needed, since it may be the store's, and not made yet.
func (c *checker) digests(file, store string) string {
	switch file {
	case "none":
		return ""
	case "":
		return filepath.Join(store, "digests")
	}
	if st, err := os.Stat(file); err == nil && !st.Mode().IsRegular() {
		c.fail("digests", file, errors.New("is not a file"))
	} else if st, err := os.Stat(filepath.Dir(file)); err != nil {
		c.fail("digests", file, fmt.Errorf("cannot be made: its directory: %s", reason(err)))
	} else if !st.IsDir() {
		c.fail("digests", file, fmt.Errorf("cannot be made: %s is a file", filepath.Dir(file)))
	}
	return file
}

// reason is what the system said, without the path that our sentence has.
func reason(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

func (c *checker) addresses(s *Settings, out *Config) {
	out.Listen, out.Admin, out.Gossip = s.Listen, s.Admin, s.Gossip
	good := true
	for _, a := range []struct{ setting, value string }{{"listen", s.Listen}, {"admin", s.Admin}, {"gossip", s.Gossip}} {
		err := checkAddr(a.value, true)
		good = good && err == nil
		c.fail(a.setting, a.value, err)
	}
	for _, a := range s.Join {
		err := checkAddr(a, false)
		good = good && err == nil
		c.fail("join", a, err)
		if err == nil {
			out.Join = append(out.Join, a)
		}
	}
	out.SquidPeers = c.squids(s)
	if !good {
		return
	}
	c.distinct(s)
	c.advertise(s, out)
}

// squids checks the addresses of Squids.
func (c *checker) squids(s *Settings) (list []string) {
	for _, a := range s.SquidPeer {
		err := checkAddr(a, false)
		switch {
		case err != nil:
		case slices.Contains(list, a):
			err = errors.New("is there twice")
		case a == s.Listen:
			err = errors.New("is the address of --listen: want that of a Squid")
		default:
			list = append(list, a)
		}
		c.fail("squid-peer", a, err)
	}
	return list
}

// distinct refuses two listeners on one port of one host.
func (c *checker) distinct(s *Settings) {
	clash := func(a, b string) bool {
		hostA, portA, _ := net.SplitHostPort(a)
		hostB, portB, _ := net.SplitHostPort(b)
		return portA == portB && portA != "0" && (hostA == hostB || wildcard(hostA) || wildcard(hostB))
	}
	if clash(s.Admin, s.Listen) {
		c.fail("admin", s.Admin, fmt.Errorf("is the address of --listen %s too: each needs its own", s.Listen))
	}
	if clash(s.Gossip, s.Listen) {
		c.fail("gossip", s.Gossip, fmt.Errorf("is the address of --listen %s too: each needs its own", s.Listen))
	}
	if clash(s.Gossip, s.Admin) {
		c.fail("gossip", s.Gossip, fmt.Errorf("is the address of --admin %s too: each needs its own", s.Admin))
	}
}

// advertise settles at which host the others reach this peer, and refuses one
// that they can't.
func (c *checker) advertise(s *Settings, out *Config) {
	if h := s.Advertise; h != "" {
		if _, _, err := net.SplitHostPort(h); err == nil || wildcard(h) || strings.ContainsAny(h, "/ []@?#") {
			c.fail("advertise", h, errors.New("is no host: want a name or an IP address without a port"))
		}
		out.Advertise = h
		return
	}
	listen, _, _ := net.SplitHostPort(s.Listen)
	gossip, _, _ := net.SplitHostPort(s.Gossip)
	switch {
	case wildcard(listen) && wildcard(gossip):
		host, err := ownAddress()
		c.fail("advertise", "", err)
		out.Advertise = host
		return
	case wildcard(listen):
		out.Advertise, listen = gossip, gossip
	case wildcard(gossip):
		out.Advertise, gossip = listen, listen
	}
	for _, a := range s.Join {
		host, _, _ := net.SplitHostPort(a)
		ip, err := netip.ParseAddr(host)
		if err != nil || ip.IsLoopback() {
			continue
		}
		for _, own := range []struct{ setting, host, value string }{{"listen", listen, s.Listen}, {"gossip", gossip, s.Gossip}} {
			if loopback(own.host) {
				c.fail(own.setting, own.value, fmt.Errorf("cannot be reached by the peer that --join %s names: want an address of this machine's network, or --advertise", a))
			}
		}
		return
	}
}

func wildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// ownAddress is the first private address of this machine or else its first
// other one that isn't loopback, IPv4 before IPv6.
func ownAddress() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("is needed: cannot list this machine's addresses: %w", err)
	}
	best, bestRank := netip.Addr{}, 0
	for _, a := range addrs {
		prefix, err := netip.ParsePrefix(a.String())
		ip := prefix.Addr().Unmap()
		if err != nil || !ip.IsGlobalUnicast() {
			continue
		}
		rank := 1
		if ip.Is4() {
			rank++
		}
		if ip.IsPrivate() {
			rank += 2
		}
		if rank > bestRank {
			best, bestRank = ip, rank
		}
	}
	if bestRank == 0 {
		return "", errors.New("is needed: --listen or --gossip is a wildcard and this machine has no address but loopback")
	}
	return best.String(), nil
}
