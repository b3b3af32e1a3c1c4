package node

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/health"
	"github.com/summarycache/summarycache/cmd/peer/internal/peertls"
	"github.com/summarycache/summarycache/cmd/peer/internal/peertls/certtest"
)

// Warnings about a certificate begin two weeks before it expires, or in the last third of a short
// lifetime, once a day. After its expiry there are errors.
func TestCertificateThatRunsOut(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name        string
		life, after time.Duration
		soon, out   int // lines in the log
	}{
		{"a year, at its start", 365 * day, 0, 0, 0},
		{"a year, two days before its end", 365 * day, 363 * day, 13, 0},
		{"an hour, at its start", time.Hour, 0, 0, 0},
		{"a day, in its last hours", day, 20 * time.Hour, 1, 0},
		{"a day, two hours after its end", day, 26*time.Hour - time.Minute, 1, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				authority := certtest.For(t, 2*tt.life)
				cert, key := authority.Peer("a", time.Now().Add(tt.life))
				identity, err := peertls.Load("a", peertls.Files{Cert: cert, Key: key, CA: authority.File})
				if err != nil {
					t.Fatal(err)
				}
				var log strings.Builder
				n := &Node{log: slog.New(slog.NewTextHandler(&log, nil)), stopped: make(chan struct{})}
				n.lateness = health.NewLateness()
				n.configure(config.Config{PeerTLS: identity})
				n.every(certificateCheck, n.certificateWatcher())
				time.Sleep(tt.after)
				close(n.stopped)
				n.serving.Wait()
				soon, out := strings.Count(log.String(), "expires soon"), strings.Count(log.String(), "has expired")
				if soon != tt.soon || out != tt.out {
					t.Errorf("told %d times that it runs out and %d times that it has, want %d and %d:\n%s", soon, out, tt.soon, tt.out, log.String())
				}
			})
		})
	}
}
