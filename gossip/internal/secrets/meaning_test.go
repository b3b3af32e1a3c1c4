package secrets

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// TestMeaning: who has another secret, or none, is told apart from who speaks no such protocol.
func TestMeaning(t *testing.T) {
	header := func(first exchange.FrameType) error {
		return fmt.Errorf("read: %w", tls.RecordHeaderError{RecordHeader: [5]byte{byte(first)}})
	}
	for name, tt := range map[string]struct {
		err  error
		want []error
	}{
		"an alert":     {fmt.Errorf("remote: %w", tls.AlertError(42)), []error{exchange.ErrSecret, tls.AlertError(42)}},
		"a refusal":    {header(exchange.FrameRefuse), []error{exchange.ErrSecret}},
		"other bytes":  {header(exchange.FrameHello), []error{exchange.ErrMalformed}},
		"a broken one": {io.ErrUnexpectedEOF, []error{io.ErrUnexpectedEOF}},
	} {
		got := Meaning(tt.err)
		for _, want := range tt.want {
			if !errors.Is(got, want) {
				t.Errorf("%s: Meaning(%v) = %v, want %v", name, tt.err, got, want)
			}
		}
		for _, other := range []error{exchange.ErrSecret, exchange.ErrMalformed} {
			if other != tt.want[0] && errors.Is(got, other) {
				t.Errorf("%s: Meaning(%v) = %v, which is %v", name, tt.err, got, other)
			}
		}
	}
}
