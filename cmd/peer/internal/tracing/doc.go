// Package tracing tells an OpenTelemetry collector what became of requests: a span
// for each request that a peer answers, and below it one for each question to a
// sibling and each request to an origin, with W3C trace context taken over from
// clients and passed on to both.
//
// Start from [New]; nil is a Tracer that does nothing and costs nothing. Spans are
// made, sampled and batched by OpenTelemetry's SDK, which its usual variables
// configure. They are sent as OTLP over HTTP in JSON by an exporter of our own:
// the SDK's brings gRPC with it, which would make the program half as large again.
package tracing
