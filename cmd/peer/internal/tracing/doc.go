// Package tracing sends spans to an OpenTelemetry collector: one for each request that a
// peer answers, and child spans for its requests to siblings and origins. W3C trace context
// comes from clients and is passed on to both.
//
// Start from [New]; nil is a Tracer that does nothing and costs nothing. Spans are
// made, sampled and batched by OpenTelemetry's SDK, which its usual variables
// configure. They are sent as OTLP over HTTP in JSON by an exporter of our own:
// the SDK's brings gRPC with it, which would make the program half as large again.
package tracing
