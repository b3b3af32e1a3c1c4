package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// exported is the part of an ExportTraceServiceRequest that the tests check.
type exported struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []exportedValue }
		ScopeSpans []struct{ Spans []exportedSpan }
	}
}

type exportedSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	Flags                               uint32
	Kind                                int
	Attributes                          []exportedValue
	Status                              struct {
		Code    int
		Message string
	}
}

type exportedValue struct {
	Key   string
	Value struct{ StringValue, IntValue string }
}

// collector stores what is posted to it.
type collector struct {
	mu       sync.Mutex
	requests []exported
	header   http.Header
	refuse   []int // statuses to answer with first
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.refuse) > 0 {
		w.WriteHeader(c.refuse[0])
		c.refuse = c.refuse[1:]
		return
	}
	var e exported
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.requests = append(c.requests, e)
	c.header = r.Header
}

// RoundTrip makes a collector the transport of an exporter, without a network.
func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Result(), nil
}

func (c *collector) spans() (all []exportedSpan) {
	for _, r := range c.requests {
		all = append(all, r.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	return all
}

func value(list []exportedValue, key string) string {
	for _, a := range list {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

func newTracer(t *testing.T, c *collector, log io.Writer) *Tracer {
	t.Helper()
	tracer := new(Tracer)
	err := tracer.Use(t.Context(), Config{Endpoint: "http://collector.test/v1/traces", Header: map[string]string{"Authorization": "Bearer x"},
		Name: "p1", Version: "v9", Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	tracer.to().exporter.client.Transport = c
	return tracer
}

func TestSpans(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=lab")
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		tracer := newTracer(t, c, io.Discard)
		var sent http.Header
		next := tracer.Transport("fetch from origin", roundTripper(func(r *http.Request) (*http.Response, error) {
			sent = r.Header
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("body"))}, nil
		}))
		failing := tracer.Transport("ask sibling", roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("no route") }))

		r := httptest.NewRequest("GET", "http://origin.test/x", nil)
		r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		r, span := tracer.Request(r)
		failing.RoundTrip(r)
		out := r.Clone(r.Context())
		resp, err := next.RoundTrip(out)
		if err != nil {
			t.Fatal(err)
		}
		io.ReadAll(resp.Body)
		resp.Body.Close()
		resp.Body.Close()
		span.End(End{URL: "http://origin.test/x", Status: 200, Outcome: "origin-fetch", Bytes: 4})
		if err := tracer.Close(context.Background()); err != nil {
			t.Fatal(err)
		}

		if c.header.Get("Authorization") != "Bearer x" || c.header.Get("Content-Type") != "application/json" {
			t.Errorf("posted with %v", c.header)
		}
		what := c.requests[0].ResourceSpans[0].Resource.Attributes
		for key, want := range map[string]string{"service.name": "summarycache-peer", "service.instance.id": "p1", "service.version": "v9", "deployment.environment": "lab"} {
			if got := value(what, key); got != want {
				t.Errorf("resource: %s = %q, want %q", key, got, want)
			}
		}
		all := c.spans()
		if len(all) != 3 {
			t.Fatalf("%d spans, want 3", len(all))
		}
		ask, fetch, request := all[0], all[1], all[2]
		for _, s := range all {
			if s.TraceID != "0af7651916cd43dd8448eb211c80319c" {
				t.Errorf("%s is of the trace %s", s.Name, s.TraceID)
			}
		}
		if request.ParentSpanID != "b7ad6b7169203331" || request.Flags != 0x301 || request.Kind != 2 || request.Name != "GET" ||
			value(request.Attributes, "summarycache.outcome") != "origin-fetch" || value(request.Attributes, "http.response.status_code") != "200" {
			t.Errorf("the request's span: %+v", request)
		}
		if fetch.ParentSpanID != request.SpanID || fetch.Kind != 3 || fetch.Name != "fetch from origin" || fetch.Status.Code != 0 ||
			sent.Get("Traceparent") != "00-"+fetch.TraceID+"-"+fetch.SpanID+"-01" {
			t.Errorf("the fetch's span: %+v, sent with %v", fetch, sent)
		}
		if ask.ParentSpanID != request.SpanID || ask.Status.Code != 2 || ask.Status.Message != "no route" {
			t.Errorf("the span of the lookup request: %+v", ask)
		}
		if r.Header.Get("Traceparent") != "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" {
			t.Error("the request's own header was changed")
		}
	})
}

// TestNoURL checks that spans for what is no URL are lost, at once and with a line in the log.
func TestNoURL(t *testing.T) {
	var log strings.Builder
	tracer := new(Tracer)
	if err := tracer.Use(t.Context(), Config{Endpoint: "http://[", Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Request(httptest.NewRequest("GET", "http://origin.test/x", nil))
	span.End(End{URL: "http://origin.test/x", Status: 200})
	if err := tracer.Close(context.Background()); err != nil || !strings.Contains(log.String(), "traces are lost") {
		t.Errorf("Close() = %v, and the log has %q, want that traces are lost", err, &log)
	}
}

// TestNoCollector checks that spans are posted again while no connection comes about, and then lost.
func TestNoCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		tracer, tries := newTracer(t, &collector{}, &log), 0
		tracer.to().exporter.client.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			tries++
			return nil, errors.New("no route")
		})
		_, span := tracer.Request(httptest.NewRequest("GET", "http://origin.test/x", nil))
		span.End(End{Status: 200})
		tracer.Close(context.Background())
		if text := log.String(); tries != attempts || strings.Count(text, "traces are lost") != 1 || !strings.Contains(text, "no route") {
			t.Errorf("%d posts, want %d, and the log says %s", tries, attempts, text)
		}
	})
}

// TestCollectorThatFails checks that spans are posted again if that may succeed, and that lost
// spans are logged once.
func TestCollectorThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		refuse    []int
		delivered int
		lost      bool
	}{
		"busy":     {[]int{503, 429}, 1, false},
		"too busy": {[]int{503, 503, 503, 503, 503, 503}, 0, true},
		"refusing": {[]int{401}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				to := &collector{refuse: c.refuse}
				tracer := newTracer(t, to, &log)
				_, span := tracer.Request(httptest.NewRequest("GET", "http://origin.test/x", nil))
				span.End(End{Status: 200})
				tracer.to().provider.ForceFlush(context.Background())
				tracer.Close(context.Background())
				if got := len(to.spans()); got != c.delivered || strings.Contains(log.String(), "traces are lost") != c.lost {
					t.Errorf("%d spans delivered, want %d; the log: %s", got, c.delivered, log.String())
				}
			})
		})
	}
}

// TestOff checks that a nil Tracer does nothing.
func TestOff(t *testing.T) {
	var off *Tracer
	if next := http.RoundTripper(&collector{}); off.Transport("x", next) != next || off.Close(t.Context()) != nil {
		t.Error("a nil Tracer does something")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
