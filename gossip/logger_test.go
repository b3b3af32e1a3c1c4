package gossip

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/limitlog"
)

// A stranger's streams have a port each, and are one cause.
func TestMemberlistsLinesOfOneCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		l := memberlistLogger(slog.New(limitlog.New(slog.NewTextHandler(&b, nil))))
		for port := range 800 {
			l.Printf("[ERR] memberlist: failed to receive: EOF from=192.0.2.1:%d", 1024+port)
			l.Printf("[WARN] memberlist: Got ping for unexpected node 'x' from=192.0.2.1:%d", 1024+port)
		}
		if got := strings.Count(b.String(), "\n"); got != 2*limitlog.AtOnce {
			t.Errorf("%d lines of two causes at once, want %d", got, 2*limitlog.AtOnce)
		}
		time.Sleep(limitlog.Every)
		b.Reset()
		l.Printf("[ERR] memberlist: failed to receive: EOF from=192.0.2.1:7")
		if got := b.String(); !strings.HasSuffix(got, `msg=memberlist says="failed to receive" detail=": EOF from=192.0.2.1:7" unsaid=1594`+"\n") {
			t.Errorf("a minute later: %q, want one line with 1594 left out", got)
		}
	})
}
