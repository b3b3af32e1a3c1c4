package node

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
)

// A request that cannot be read is counted and logged like others. It is no miss.
func TestUnreadRequests(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	n := impatient(t, drained, func(c *config.Config) { c.AccessLog, c.AccessLogFormat = log, "combined" })
	_, r := say(t, n, "GET /% HTTP/1.1\r\nHost: x\r\n\r\n")
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Fatalf("%v, %v", resp, err)
	}
	want := regexp.MustCompile(`(?m)^127\.0\.0\.1 - - \[.*\] "-" 400 0 "-" "-" client-error - 0\.000000 - "detail=unreadable"$`)
	var text []byte
	for end := time.Now().Add(20 * time.Second); !want.Match(text) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		text, _ = os.ReadFile(log)
	}
	if !want.Match(text) {
		t.Errorf("the access log has %q", text)
	}
	if got := n.Status().Traffic; got.ClientErrors != 1 || got.Requests != 1 {
		t.Errorf("counted as %+v", got)
	}
}
