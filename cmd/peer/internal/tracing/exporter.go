package tracing

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	attempts   = 3                      // to deliver one batch
	firstPause = 500 * time.Millisecond // after the first of them; doubles
)

// An exporter posts spans to a collector. It logs when spans cannot be delivered and are lost.
type exporter struct {
	cfg    Config
	client *http.Client
	log    *slog.Logger
}

// ExportSpans implements [sdk.SpanExporter].
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	body, err := json.Marshal(requestOf(spans))
	if err != nil {
		return err
	}
	again, err := e.post(ctx, body)
	for i := 1; again && i < attempts; i++ {
		select {
		case <-time.After(firstPause << (i - 1)):
		case <-ctx.Done():
		}
		again, err = e.post(ctx, body)
	}
	if err != nil {
		e.log.Warn("traces are lost", "endpoint", e.cfg.Endpoint, "spans", len(spans), "err", err)
	}
	return nil
}

// post makes one attempt. again reports whether another may succeed.
func (e *exporter) post(ctx context.Context, body []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(e.cfg.Timeout, 10*time.Second))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.cfg.Endpoint, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	for name, value := range e.cfg.Header {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := e.client.Do(r)
	if err != nil {
		return true, err
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	switch answer.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return again, fmt.Errorf("the collector answered %s", answer.Status)
}

// Shutdown implements [sdk.SpanExporter].
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}
