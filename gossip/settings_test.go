package gossip

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/bloom"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// TestSettings: a setting that cannot work is refused by an error that says what to do, or works: its zero value, its
// extremes and its commonest mistake.
func TestSettings(t *testing.T) {
	taken := NewHoldings(newFilter(t, testSecret))
	for name, tc := range map[string]struct {
		set  func(*Config)
		want string // in the error; "" = it works
	}{
		"no name":                      {func(c *Config) { c.Name = "" }, "want 1 to 63"},
		"the longest name":             {func(c *Config) { c.Name = strings.Repeat("n", exchange.MaxName) }, ""},
		"a name too long":              {func(c *Config) { c.Name = strings.Repeat("n", exchange.MaxName+1) }, "want 1 to 63"},
		"a name that is a path":        {func(c *Config) { c.Name = "../n" }, "want 1 to 63"},
		"bind to any port":             {func(c *Config) { c.Bind = "10.0.0.1:0" }, ""},
		"bind to a host":               {func(c *Config) { c.Bind = "10.0.0.1" }, "missing port"},
		"bind to too great a port":     {func(c *Config) { c.Bind = "10.0.0.1:65536" }, "want 0 to 65535"},
		"advertise all addresses":      {func(c *Config) { c.Advertise = "0.0.0.0" }, "want an address of this machine"},
		"advertise all of IPv6":        {func(c *Config) { c.Advertise = "[::]:7946" }, "want an address of this machine"},
		"advertise a port only":        {func(c *Config) { c.Advertise = ":7946" }, "want an address of this machine"},
		"advertise a group":            {func(c *Config) { c.Advertise = "224.0.0.1" }, "want an address of this machine"},
		"advertise a URL":              {func(c *Config) { c.Advertise = "http://10.0.0.1" }, "no address for"},
		"join no one":                  {func(c *Config) { c.Join = []string{} }, ""},
		"join an empty name":           {func(c *Config) { c.Join = []string{""} }, "missing port"},
		"join without a port":          {func(c *Config) { c.Join = []string{"10.0.0.2"} }, "missing port"},
		"join port 0":                  {func(c *Config) { c.Join = []string{"10.0.0.2:0"} }, "port 0"},
		"join all addresses":           {func(c *Config) { c.Join = []string{"0.0.0.0:7946"} }, "no host: want the address of another peer"},
		"a short secret":               {func(c *Config) { c.Secret, c.Holdings, c.Objects = []byte("short"), nil, 1 }, "want at least 16"},
		"no service":                   {func(c *Config) { c.Service = "" }, ""},
		"a service without a port":     {func(c *Config) { c.Service = "10.0.0.1" }, "missing port"},
		"a service at port 0":          {func(c *Config) { c.Service = "10.0.0.1:0" }, "pass the address that the listener got"},
		"a service at :0":              {func(c *Config) { c.Service = ":0" }, "pass the address that the listener got"},
		"a service at :http":           {func(c *Config) { c.Service = ":http" }, "want 0 to 65535"},
		"a service that is a URL":      {func(c *Config) { c.Service = "http://10.0.0.1:80" }, "too many colons"},
		"a service at loopback":        {func(c *Config) { c.Service = "127.0.0.1:80" }, `want an address that they reach, or ":80"`},
		"a service at localhost":       {func(c *Config) { c.Service = "localhost:80" }, `want an address that they reach, or ":80"`},
		"too long a service":           {func(c *Config) { c.Service = strings.Repeat("s", 61) + ":80" }, "longer than 63 bytes"},
		"objects below 0":              {func(c *Config) { c.Holdings, c.Objects = nil, -1 }, "want 0 to"},
		"objects and holdings":         {func(c *Config) { c.Objects = 1 }, "want one of them"},
		"one object":                   {func(c *Config) { c.Holdings, c.Objects = nil, 1 }, ""},
		"60 million objects":           {func(c *Config) { c.Holdings, c.Objects = nil, 60e6 }, "greater Limits.DigestBytes at every peer"},
		"60 million, and room":         {func(c *Config) { c.Holdings, c.Objects, c.Limits.DigestBytes = nil, 60e6, 128<<20 }, ""},
		"the most objects":             {func(c *Config) { c.Holdings, c.Objects, c.Limits.DigestBytes = nil, objectsMax, 2_000_000_000 }, ""},
		"more than the most":           {func(c *Config) { c.Holdings, c.Objects = nil, objectsMax+1 }, "want 0 to"},
		"zero holdings":                {func(c *Config) { c.Holdings = new(Holdings) }, "holdings without a filter"},
		"holdings of two nodes":        {func(c *Config) { c.Holdings = taken }, "published by another node"},
		"any profile":                  {func(c *Config) { c.Holdings, c.Objects, c.Profile = nil, 1, digest.AnyProfile }, "profile 255"},
		"a listener of any profile":    {func(c *Config) { c.Holdings, c.Profile = nil, digest.AnyProfile }, ""},
		"a state file in no directory": {func(c *Config) { c.StateFile = filepath.Join(t.TempDir(), "no", "state") }, "no such file or directory"},
		"a state file, a directory":    {func(c *Config) { c.StateFile = t.TempDir() }, "not a regular file"},
		"a zone with a blank":          {func(c *Config) { c.Zone = "my zone" }, "want 1 to 14"},
		"publish below 0":              {func(c *Config) { c.Publish.Interval = -1 }, "no interval below 0"},
		"publish at once":              {func(c *Config) { c.Publish.MinInterval, c.Publish.Interval = 1, 1 }, ""},
		"digests of some bytes":        {func(c *Config) { c.Limits.DigestBytes = 64 }, "DigestBytes is 64: want at least 1024"},
		"connections below 0":          {func(c *Config) { c.Limits.Conns = -1 }, "none below 0"},
		"members below 0":              {func(c *Config) { c.Limits.Members = -1 }, "none below 0"},
		"too many members":             {func(c *Config) { c.Limits.Members = maxMembers + 1 }, "at most"},
		"four accepted secrets":        {func(c *Config) { c.AcceptSecrets = secretsOf(4) }, "5 secrets: want at most 4"},
		"an empty accepted secret":     {func(c *Config) { c.AcceptSecrets = [][]byte{nil} }, "want at least 16"},
		"held since tomorrow":          {func(c *Config) { c.HeldSince = time.Now().Add(24 * time.Hour) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				defer c.close()
				first := c.config("first", "10.0.0.9")
				first.Holdings = taken
				c.start(first)
				cfg := c.config("p1", "10.0.0.1")
				tc.set(&cfg)
				n, err := New(cfg)
				if err == nil {
					defer n.Close()
				}
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("New = %v, want %q", err, tc.want)
				}
			})
		})
	}
}

func secretsOf(n int) (all [][]byte) {
	for i := range n {
		all = append(all, fmt.Appendf(nil, "the secret of number %d", i))
	}
	return all
}

// TestServiceWithoutHost: the others learn an address at which they reach this peer's service.
func TestServiceWithoutHost(t *testing.T) {
	for service, tc := range map[string]struct{ bind, advertise, want string }{
		":8080":          {"10.0.0.1:7946", "", "10.0.0.1:8080"},
		"0.0.0.0:8080":   {"10.0.0.1:7946", "", "10.0.0.1:8080"},
		"[::]:8080":      {"0.0.0.0:7946", "10.0.0.1", "10.0.0.1:8080"},
		"10.0.0.7:8080":  {"10.0.0.1:7946", "", "10.0.0.7:8080"},
		"cache.test:080": {"10.0.0.1:7946", "", "cache.test:080"},
	} {
		t.Run(service, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				defer c.close()
				cfg := c.config("p1", "10.0.0.1")
				cfg.Bind, cfg.Advertise, cfg.Service = tc.bind, tc.advertise, service
				a := c.start(cfg)
				a.Holdings().Add("x")
				cfg = c.config("p2", "10.0.0.2")
				cfg.Join = []string{"10.0.0.1:7946"}
				b := c.start(cfg)
				time.Sleep(10 * time.Second)
				if got := b.Candidates(nil, "x"); len(got) != 1 || got[0].Service != tc.want {
					t.Errorf("Candidates of %s = %+v, want one at %s", service, got, tc.want)
				}
			})
		})
	}
}

// TestClaim: a node has one cache at most, and none without a Service.
func TestClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		cfg := c.config("p1", "10.0.0.1")
		node := c.start(cfg)
		cfg = c.config("p2", "10.0.0.2")
		cfg.Service = ""
		mute := c.start(cfg)
		closed := c.start(c.config("p3", "10.0.0.3"))
		closed.Close()
		broken := errors.New("broken")
		for i, tc := range []struct {
			node  *Node
			opens error
			want  string
		}{
			{mute, nil, "set Service in Config"},
			{closed, nil, ErrClosed.Error()},
			{node, broken, "broken"},
			{node, nil, ""},
			{node, broken, "want a node for each"},
		} {
			err := tc.node.Inside().Claim(func() error { return tc.opens })
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Claim %d = %v, want %q", i, err, tc.want)
			}
		}
	})
}

// TestHoldingsOfTheNextNode: holdings are free again when their node has ended, or could not begin.
func TestHoldingsOfTheNextNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		cfg := c.config("p1", "10.0.0.1")
		for range 3 {
			n, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := New(cfg); err == nil { // the port is in use
				t.Fatal("two nodes at one port")
			}
			if err := errors.Join(n.Close(), n.Close()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestLimitsAgree: New takes as many objects as receivers with the default digest.Limits do.
func TestLimitsAgree(t *testing.T) {
	for _, rate := range []float64{1e-9, 1e-6, 0.001, 0.1, 0.5} {
		most := func(takes func(uint64) error) uint64 {
			return uint64(sort.Search(1<<30, func(n int) bool { return takes(uint64(n+1)) != nil }))
		}
		byLimits := most(func(n uint64) error {
			g, err := digest.GeometryFor(n, rate)
			if err == nil {
				fill, _ := bloom.Predict(g.Bits, g.Hashes, n)
				err = digest.Limits{}.Accept(g, uint64(fill*float64(g.Bits)))
			}
			return err
		})
		byNew := most(func(n uint64) error {
			h, err := PlanHoldings(n, rate, digest.HTTP, nil)
			if err == nil {
				_, err = Config{Name: "p", Holdings: h}.withDefaults()
			}
			return err
		})
		if off := float64(byLimits)/float64(byNew) - 1; math.Abs(off) > 1e-5 {
			t.Errorf("at a rate of %v New takes %d objects, receivers %d", rate, byNew, byLimits)
		}
	}
}
