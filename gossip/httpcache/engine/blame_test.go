package engine

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/summarycache/summarycache/gossip/http1"
)

// A request that failed is its client's fault if no origin could have answered it, or if the origin says so. Which
// answer the client gets then says why. All other errors are the origin's.
func TestBlame(t *testing.T) {
	for _, tt := range []struct {
		name, err string
		tune      func(*http.Request)
		status    int // of the answer to the client; 0 = the error is the origin's
	}{
		{"refused", "connection refused", nil, 0},
		{"reset within HTTP/2", "stream error: stream ID 1; INTERNAL_ERROR; received from peer", nil, 0},
		{"canceled by the origin", "stream error: stream ID 1; CANCEL; received from peer", nil, 0},
		{"its own deadline", "stream error: stream ID 1; CANCEL; received from peer",
			func(r *http.Request) { r.Header.Set("Grpc-Timeout", "1S") }, http.StatusGatewayTimeout},
		{"malformed", "stream error: stream ID 1; PROTOCOL_ERROR; received from peer", nil, http.StatusBadRequest},
		{"too long", "http2: request header list larger than peer's advertised limit", nil,
			http.StatusRequestHeaderFieldsTooLarge},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://o.test/x", nil)
		if tt.tune != nil {
			tt.tune(r)
		}
		cause := errors.New(tt.err)
		err := Blame(r, cause)
		status := 0
		var client *clientError
		if errors.As(err, &client) {
			status = client.told.status
		}
		if status != tt.status || IsClients(err) != (status != 0) || !errors.Is(err, cause) {
			t.Errorf("%s: status %d, want %d; %v", tt.name, status, tt.status, err)
		}
		if again := Blame(r, err); IsClients(again) != IsClients(err) {
			t.Errorf("%s: blamed twice: %v", tt.name, again)
		}
	}
}

// What cannot be sent to any origin is its client's fault.
func TestBlameForInvalid(t *testing.T) {
	for name, tune := range map[string]func(*http.Request){
		"a field's value": func(r *http.Request) { r.Header["A"] = []string{"\x00"} },
		"a field's name":  func(r *http.Request) { r.Header["a b"] = []string{"c"} },
		"a host":          func(r *http.Request) { r.Host = "a b" },
		"a method":        func(r *http.Request) { r.Method = "A B" },
	} {
		r := httptest.NewRequest(http.MethodGet, "http://o.test/x", nil)
		tune(r)
		_, err := http1.ToOrigins().RoundTrip(r)
		if err = Blame(r, err); !IsClients(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
