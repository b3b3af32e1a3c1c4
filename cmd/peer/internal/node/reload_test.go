package node

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/digest"
	format "github.com/summarycache/summarycache/digest/squid"
)

// OPERATING.md lists the settings that a reload does not change, and each is one.
func TestFixedSettings(t *testing.T) {
	page, err := os.ReadFile("../../OPERATING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "the error has the reason:")
	list, _, _ = strings.Cut(list, "\n- whether")
	named := make(map[string]bool)
	for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(list, -1) {
		named[m[1]] = true
	}
	if got, want := slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(fixed)); !slices.Equal(got, want) {
		t.Errorf("OPERATING.md lists\n%v, and these are fixed:\n%v", got, want)
	}
	settings := make(map[string]bool)
	for field := range reflect.TypeFor[config.Config]().Fields() {
		settings[field.Tag.Get("name")] = true
	}
	for name := range fixed {
		if !settings[name] {
			t.Errorf("%s is no setting", name)
		}
	}
}

// applied are the settings that a reload changes: all others are fixed.
const applied = "admin-host admin-token-file access-log access-log-format between-bytes-timeout client-body-timeout " +
	"compress connect-port connect-timeout connection-age default-ttl drain drain-delay false-positives " +
	"first-byte-timeout https-cert https-key join log-level objects origin otlp-endpoint pass-field " +
	"preserve-host profiles proxy-client proxy-protocol publish purge-client secret-file send-timeout sibling-compare " +
	"sibling-max-age squid-peer store-size tls-ca tls-cert tls-key trusted-proxies zone-cost"

// A reload says that it has changed each setting that differs, so it must have.
func TestSettingsAreFixedOrApplied(t *testing.T) {
	for field := range reflect.TypeFor[config.Config]().Fields() {
		name := field.Tag.Get("name")
		if name == "" || name == "config" {
			continue
		}
		if fixed[name] == "" != slices.Contains(strings.Fields(applied), name) {
			t.Errorf("%s: if it is in effect after a reload, name it in applied, here; if it is not, in fixed, in reload.go, and "+
				"in OPERATING.md", name)
		}
	}
}

// What a reload changes of digest, Squids and traces is in effect when Apply returns, and undone by the next.
func TestApply(t *testing.T) {
	var spans atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { spans.Add(1) }))
	defer collector.Close()
	n := start(t, local(t, t.TempDir()), nil)
	was := *n.config()
	answers := func(path string) int {
		t.Helper()
		_, r := say(t, n, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	next := was
	next.Objects, next.FalsePositives, next.SquidPeers, next.ZoneCost = 4321, 0.02, []string{"127.0.0.1:1", "127.0.0.1:2"}, time.Second
	next.Traces, _ = url.Parse(collector.URL)
	for _, c := range []config.Config{next, was} {
		if _, err := n.Apply(c, nil, false); err != nil {
			t.Fatal(err)
		}
		if want, _ := digest.GeometryFor(c.Objects, c.FalsePositives); n.holdings.Keys().Inside().Planned() != c.Objects || n.holdings.Keys().Filter().Geometry().Bits != want.Bits {
			t.Errorf("planned for %d objects by %v", n.holdings.Keys().Inside().Planned(), n.holdings.Keys().Filter().Geometry())
		}
		if got := n.squidMembers(); len(got) != len(c.SquidPeers) || len(got) > 0 && got[1].Service != c.SquidPeers[1] {
			t.Errorf("Squids: %+v", got)
		}
		if code := answers(format.Path); (code == http.StatusOK) != (len(c.SquidPeers) > 0) {
			t.Errorf("the digest for Squids: %d", code)
		}
		spans.Store(0)
		answers("/x")
		if n.tracing.On() != (c.Traces != nil) {
			t.Error("traces are sent, or not, against the configuration")
		}
	}
	if spans.Load() != 0 {
		t.Errorf("%d posts of spans without a collector", spans.Load())
	}
	if _, err := n.Apply(next, nil, false); err != nil {
		t.Fatal(err)
	}
	answers("/x")
	if _, err := n.Apply(was, nil, false); err != nil || spans.Load() == 0 {
		t.Errorf("the former collector has not got its last spans: %v", err)
	}
}
