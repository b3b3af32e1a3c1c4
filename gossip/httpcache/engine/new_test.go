package engine

import (
	"net/http"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// TestNewRefuses: a Cache needs an origin and a store.
func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"nothing":   {},
		"no origin": {Open: memstore.Open(1 << 20)},
		"no store":  {Transport: http.DefaultTransport},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "needs") {
			t.Errorf("New with %s: %v", name, err)
		}
	}
}
