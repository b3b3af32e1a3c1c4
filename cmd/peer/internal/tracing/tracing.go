package tracing

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Config says where spans go.
type Config struct {
	Endpoint string            // URL that spans are posted to, as OTLP in JSON
	Header   map[string]string // fields to send with them, such as for authorization
	Timeout  time.Duration     // for one batch; 0 = 10 s
	Name     string            // of this peer: service.instance.id
	Version  string            // of the program: service.version
	Logger   *slog.Logger
}

// A Tracer makes spans once it has an endpoint: see [Tracer.Use]. It is safe for concurrent use; the zero value and nil
// make none.
type Tracer struct{ now atomic.Pointer[destination] }

// A destination is where spans go.
type destination struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	exporter *exporter
}

const scope = "github.com/summarycache/summarycache/cmd/peer"

var w3c = propagation.TraceContext{}

// Use has spans that begin from now on sent to c's endpoint; "" = none are made. OTEL_SERVICE_NAME,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and OTEL_BSP_* apply. Those that the former endpoint has not got yet
// are sent there for as long as ctx allows, which Use waits for. After an error nothing has changed; that former spans
// are lost is none.
func (t *Tracer) Use(ctx context.Context, c Config) error {
	next, err := begin(ctx, c)
	if err != nil {
		return err
	}
	if former := t.now.Swap(next); former != nil {
		if err := former.provider.Shutdown(ctx); err != nil {
			c.Logger.Warn("the last traces for the former endpoint are lost", "err", err)
		}
	}
	return nil
}

// On reports whether spans are made.
func (t *Tracer) On() bool { return t.to() != nil }

func (t *Tracer) to() *destination {
	if t == nil {
		return nil
	}
	return t.now.Load()
}

func begin(ctx context.Context, c Config) (*destination, error) {
	if c.Endpoint == "" {
		return nil, nil
	}
	what, err := resource.New(ctx,
		resource.WithAttributes(
			attribute.String("service.name", "summarycache-peer"), attribute.String("service.version", c.Version),
			attribute.String("service.instance.id", c.Name)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	t := &destination{exporter: &exporter{
		cfg: c, log: c.Logger,
		client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: time.Minute}},
	}}
	t.provider = sdk.NewTracerProvider(sdk.WithResource(what), sdk.WithBatcher(t.exporter))
	t.tracer = t.provider.Tracer(scope, trace.WithInstrumentationVersion(c.Version))
	return t, nil
}

// Close sends the remaining spans, for as long as ctx allows.
func (t *Tracer) Close(ctx context.Context) error {
	if to := t.to(); to != nil {
		return to.provider.Shutdown(ctx)
	}
	return nil
}

// A Request is the span of a request that is being answered; the zero value = none is made.
type Request struct{ span trace.Span }

// Request begins the span of a request, and returns the request with the span in its context. The span
// must be ended.
func (t *Tracer) Request(r *http.Request) (*http.Request, Request) {
	to := t.to()
	if to == nil {
		return r, Request{}
	}
	ctx := w3c.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := to.tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", r.Method),
			attribute.String("client.address", r.RemoteAddr)))
	return r.WithContext(ctx), Request{span}
}

// Trace returns the trace identifier of a request in hexadecimal, from its span or, without one, from
// its traceparent field; "" = none.
func (r Request) Trace(q *http.Request) string {
	if r.span != nil {
		return r.span.SpanContext().TraceID().String()
	}
	if lines := q.Header["Traceparent"]; len(lines) == 1 && len(lines[0]) == 55 {
		return lines[0][3:35]
	}
	return ""
}

// An End is the result of a request.
type End struct {
	URL     string
	Status  int    // 0 = no answer
	Outcome string // its name in the metrics
	Peer    string // the sibling that answered; "" = none
	Bytes   int64  // of the body
	Err     error  // nil = none
}

// End ends the span.
func (r Request) End(e End) {
	if r.span == nil {
		return
	}
	r.span.SetAttributes(attribute.String("url.full", e.URL), attribute.Int("http.response.status_code", e.Status),
		attribute.String("summarycache.outcome", e.Outcome), attribute.Int64("http.response.body.size", e.Bytes))
	if e.Peer != "" {
		r.span.SetAttributes(attribute.String("summarycache.sibling", e.Peer))
	}
	if e.Err != nil {
		r.span.SetStatus(codes.Error, e.Err.Error())
	} else if e.Status >= 500 {
		r.span.SetStatus(codes.Error, "")
	}
	r.span.End()
}
