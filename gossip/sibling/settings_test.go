package sibling

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/gossip/peering"
	"time"
)

// TestSettings: a setting that cannot work is refused by an error that says what to do, or works.
func TestSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(*Config)
		want string // in the error; "" = it works
	}{
		"all zero":                  {func(c *Config) { *c = Config{} }, "no Locator"},
		"no name":                   {func(c *Config) { c.Name = "" }, "cannot name a cache"},
		"a name with a blank":       {func(c *Config) { c.Name = "a b" }, "cannot name a cache"},
		"a name with a port":        {func(c *Config) { c.Name = "a:80" }, "cannot name a cache"},
		"no locator":                {func(c *Config) { c.Locator = nil }, "no Locator"},
		"a timeout below 0":         {func(c *Config) { c.Timeout = -1 }, "negative"},
		"a timeout without unit":    {func(c *Config) { c.Timeout = 500 }, "500ns no sibling answers"},
		"the least timeout":         {func(c *Config) { c.Timeout = time.Millisecond }, ""},
		"a timeout of an hour":      {func(c *Config) { c.Timeout = time.Hour }, ""},
		"a zone cost below 0":       {func(c *Config) { c.ZoneCost = -1 }, "negative"},
		"only a name and a locator": {func(*Config) {}, ""},
	} {
		cfg := Config{Name: "a", Locator: new(world)}
		tc.set(&cfg)
		if _, err := New(cfg); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: New = %v, want %q", name, err, tc.want)
		}
	}
	c, err := New(Config{Name: "a", Locator: new(world), ZoneCost: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if c.Inside().SetZoneCost(-1); c.zoneCost.Load() != 0 {
		t.Errorf("SetZoneCost(-1) sets %d", c.zoneCost.Load())
	}
	whole := peering.CoalescerConfig{Name: "a", Others: func() []Peer { return nil }, Key: func(string) uint64 { return 0 }, HTTP: http.DefaultTransport}
	NewCoalescer(whole, new(Health))
	for field, unset := range map[string]func(*peering.CoalescerConfig) *Health{
		"Name":   func(c *peering.CoalescerConfig) *Health { c.Name = ""; return new(Health) },
		"Others": func(c *peering.CoalescerConfig) *Health { c.Others = nil; return new(Health) },
		"Key":    func(c *peering.CoalescerConfig) *Health { c.Key = nil; return new(Health) },
		"HTTP":   func(c *peering.CoalescerConfig) *Health { c.HTTP = nil; return new(Health) },
		"Health": func(*peering.CoalescerConfig) *Health { return nil },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, field) {
					t.Errorf("NewCoalescer without %s: panics with %q", field, got)
				}
			}()
			cfg := whole
			h := unset(&cfg)
			NewCoalescer(cfg, h)
		}()
	}
}
