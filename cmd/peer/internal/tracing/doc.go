// Package tracing sends spans to an OpenTelemetry collector: one for each request to a peer, and child
// spans for the peer's own requests to siblings and origins. W3C trace context is accepted from clients
// and passed on to both.
//
// Start from [New]. A nil Tracer does nothing. OpenTelemetry's SDK makes, samples and batches the
// spans, and its usual variables configure it. An exporter of our own sends them as OTLP over HTTP in
// JSON: the SDK's exporters import gRPC, which would make the program half as large again.
package tracing
