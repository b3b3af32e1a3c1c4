package tracing

import (
	"io"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport returns a transport that makes a span of that name for each request to next, from sending
// it until the response body is closed, and puts the span's context into the request's header. A nil
// Tracer returns next.
func (t *Tracer) Transport(name string, next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return &transport{t, name, next}
}

type transport struct {
	*Tracer
	name string
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	to := t.to()
	if to == nil {
		return t.next.RoundTrip(r)
	}
	ctx, span := to.tracer.Start(r.Context(), t.name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("url.full", r.URL.String())))
	out := r.WithContext(ctx)
	out.Header = r.Header.Clone()
	w3c.Inject(ctx, propagation.HeaderCarrier(out.Header))
	resp, err := t.next.RoundTrip(out)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
		span.End()
		return nil, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	if resp.StatusCode == http.StatusSwitchingProtocols || resp.Body == nil {
		span.End() // there is no body to close
		return resp, nil
	}
	resp.Body = &traced{ReadCloser: resp.Body, span: span}
	return resp, nil
}

// A traced body ends a span when it is closed.
type traced struct {
	io.ReadCloser
	span trace.Span
	once sync.Once
}

func (b *traced) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.span.SetStatus(codes.Error, err.Error())
	}
	return n, err
}

func (b *traced) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(func() { b.span.End() })
	return err
}
