package httpcache

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
	"github.com/summarycache/summarycache/gossip/memnet"
)

// TestSettings: a setting of a Member or a store that cannot work is refused by an error that says what to do, or works.
func TestSettings(t *testing.T) {
	fails := errors.New("no store")
	for name, tc := range map[string]struct {
		node   func(*gossip.Config)
		member func(*MemberConfig)
		want   string // in the error; "" = it works
	}{
		"all zero":             {nil, func(c *MemberConfig) { *c = MemberConfig{} }, "needs a node and a store"},
		"no store":             {nil, func(c *MemberConfig) { c.Open = nil }, "needs a node and a store"},
		"no objects":           {func(c *gossip.Config) { c.Objects = 0 }, nil, "set Objects in gossip.Config"},
		"opaque identities":    {func(c *gossip.Config) { c.Profile = digest.Opaque }, nil, "set Profile: digest.HTTP"},
		"no service":           {func(c *gossip.Config) { c.Service = "" }, nil, "set Service in Config"},
		"a name no Via has":    {func(c *gossip.Config) { c.Name = "a:b" }, nil, "cannot name a cache"},
		"a service of a port":  {func(c *gossip.Config) { c.Service = ":80" }, nil, ""},
		"memory of 0 bytes":    {nil, func(c *MemberConfig) { c.Open = memstore.Open(0) }, "want at least 4 KiB"},
		"memory below 0":       {nil, func(c *MemberConfig) { c.Open = memstore.Open(-1) }, "want at least 4 KiB"},
		"memory of 64 MiB, in": {nil, func(c *MemberConfig) { c.Open = memstore.Open(64) }, "want at least 4 KiB, such as 64 << 20"},
		"the least memory":     {nil, func(c *MemberConfig) { c.Open = memstore.Open(4 << 10) }, ""},
		"a disk of 0 bytes":    {nil, func(c *MemberConfig) { c.Open = diskstore.Options{Dir: t.TempDir()}.Open }, "less than 1 MiB"},
		"a disk without a dir": {nil, func(c *MemberConfig) { c.Open = diskstore.Options{MaxBytes: 1 << 20}.Open }, "no directory given"},
		"a store that fails":   {nil, func(c *MemberConfig) { c.Open = func(bodies.Hooks) (bodies.Store, error) { return nil, fails } }, fails.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			host := memnet.New(1).Host("10.0.0.1")
			cfg := gossip.Config{Name: "a", Bind: "10.0.0.1:7946", Service: "10.0.0.1:80", Objects: 100, Profile: digest.HTTP,
				Advanced: gossip.Advanced{Network: host}, Logger: slog.New(slog.DiscardHandler)}
			if tc.node != nil {
				tc.node(&cfg)
			}
			node, err := gossip.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer node.Close()
			member := MemberConfig{Node: node, Open: memstore.Open(1 << 20)}
			if tc.member != nil {
				tc.member(&member)
			}
			m, err := NewMember(member)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("NewMember = %v, want %q", err, tc.want)
				}
				if tc.member == nil {
					return
				}
				m, err = NewMember(MemberConfig{Node: node, Open: memstore.Open(1 << 20)}) // what failed keeps nothing
			}
			if err != nil {
				t.Fatalf("NewMember = %v", err)
			}
			if _, err := NewMember(MemberConfig{Node: node, Open: memstore.Open(1 << 20)}); err == nil || !strings.Contains(err.Error(), "want a node for each") {
				t.Errorf("a second Member of a node: %v", err)
			}
			node.Close()
			m.Close()
		})
	}
}

// TestLoadOfItself: a load that asks for the value that it makes gets an error at once, however it asks, and one that
// asks for another value gets that.
func TestLoadOfItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, other := newTestMember(t, "m", nil, nil), newTestMember(t, "other", nil, nil)
		open := func(ctx context.Context, name string) error {
			r, err := m.Open(ctx, name, func(context.Context) (io.ReadCloser, time.Time, error) {
				return io.NopCloser(strings.NewReader("v")), time.Time{}, nil
			})
			if err == nil {
				err = r.Close()
			}
			return err
		}
		get := func(m *Member) func(context.Context, string) error {
			return func(ctx context.Context, name string) error { _, err := m.Get(ctx, name, value("v")); return err }
		}
		for name, tc := range map[string]struct {
			asks func(ctx context.Context, name string) error
			of   string
			want error
		}{
			"Get":              {get(m), "x", errItself},
			"Open":             {open, "x", errItself},
			"Stat":             {func(ctx context.Context, name string) error { _, _, err := m.Stat(ctx, name); return err }, "x", errItself},
			"Get of another":   {get(m), "y", nil},
			"another Member's": {get(other), "x", nil},
			"in a load of another": {func(ctx context.Context, name string) error {
				_, err := m.Get(ctx, "y", func(ctx context.Context) ([]byte, time.Time, error) { return nil, time.Time{}, get(m)(ctx, name) })
				return err
			}, "x", errItself},
			"in a handler in it": {func(ctx context.Context, name string) error {
				return m.Serve(&collected{}, request(ctx), func(_ http.ResponseWriter, r *http.Request) error { return get(m)(r.Context(), name) })
			}, "x", errItself},
			"Put": {func(ctx context.Context, name string) error { return m.Put(ctx, name, strings.NewReader("v")) }, "x", nil},
		} {
			time.Sleep(time.Second) // what was stored last must not be of the moment of the removal
			if err := m.Remove(t.Context(), "x", "y"); err != nil {
				t.Fatal(err)
			}
			other.Purge(TargetOf(ValueURL("x")))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			var within context.Context
			_, err := m.Get(ctx, "x", func(ctx context.Context) ([]byte, time.Time, error) {
				within = context.WithoutCancel(ctx)
				return []byte("v"), time.Now(), tc.asks(ctx, tc.of)
			})
			cancel()
			if !errors.Is(err, tc.want) {
				t.Errorf("%s of %s in the load of x: %v, want %v", name, tc.of, err, tc.want)
			}
			if err := get(m)(within, "x"); err != nil {
				t.Errorf("%s: after the load, under its context: %v", name, err)
			}
		}
	})
}

func request(ctx context.Context) *http.Request {
	r := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: "o.test", Path: "/"}, Host: "o.test", Header: http.Header{}}
	return r.WithContext(ctx)
}
