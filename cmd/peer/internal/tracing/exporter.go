package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	attempts   = 3                      // to deliver one batch
	firstPause = 500 * time.Millisecond // after the first of them; doubles
	quietFor   = time.Minute            // between two words in the log about a collector that fails
)

// exporter posts spans to a collector. Spans that can't be delivered are lost, and
// the log says so.
type exporter struct {
	cfg      Config
	client   *http.Client
	lost     atomic.Int64 // spans, since the log last said so
	lastWord atomic.Int64 // when that was, Unix nanoseconds
}

func newExporter(c Config) *exporter {
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &exporter{cfg: c, client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: time.Minute}}}
}

// ExportSpans implements [sdk.SpanExporter].
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	body, err := json.Marshal(requestOf(spans))
	if err != nil {
		return err
	}
	pause := firstPause
	for i := range attempts {
		var again bool
		if again, err = e.post(ctx, body); err == nil {
			return nil
		}
		if !again || i == attempts-1 {
			break
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
		}
	}
	e.complain(len(spans), err)
	return nil
}

// post delivers once. again tells whether another attempt may do better.
func (e *exporter) post(ctx context.Context, body []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
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
	return again, fmt.Errorf("the collector answers %s", answer.Status)
}

// complain logs that spans were lost, once in a while.
func (e *exporter) complain(spans int, err error) {
	lost := e.lost.Add(int64(spans))
	last, now := e.lastWord.Load(), time.Now().UnixNano()
	if now-last < int64(quietFor) || !e.lastWord.CompareAndSwap(last, now) {
		return
	}
	e.lost.Add(-lost)
	e.cfg.Logger.Warn("traces are lost", "endpoint", e.cfg.Endpoint, "spans", lost, "err", err)
}

// Shutdown implements [sdk.SpanExporter].
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}
