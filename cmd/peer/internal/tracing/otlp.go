package tracing

import (
	"fmt"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// An object is one of the JSON of an ExportTraceServiceRequest (opentelemetry-proto, and the
// section "JSON Protobuf Encoding" of the OTLP specification): identifiers in hex, 64-bit
// numbers as strings, enumerations as numbers.
type object map[string]any

// requestOf describes the spans of one provider, at least one. A provider has one resource
// and, here, one scope.
func requestOf(spans []sdk.ReadOnlySpan) object {
	list := make([]object, len(spans))
	for i, s := range spans {
		list[i] = spanOf(s)
	}
	resource, scope := spans[0].Resource(), spans[0].InstrumentationScope()
	return object{"resourceSpans": []object{{
		"resource":   object{"attributes": attributes(resource.Attributes())},
		"schemaUrl":  resource.SchemaURL(),
		"scopeSpans": []object{{"scope": object{"name": scope.Name, "version": scope.Version}, "spans": list}},
	}}}
}

// Bits 8 and 9 of a span's flags say whether its parent is remote, and that this is known.
const (
	parentKnown  = 0x100
	parentRemote = 0x200
)

func spanOf(s sdk.ReadOnlySpan) object {
	c, status := s.SpanContext(), object{}
	flags := uint32(c.TraceFlags()) | parentKnown
	if s.Parent().IsRemote() {
		flags |= parentRemote
	}
	switch s.Status().Code {
	case codes.Ok:
		status["code"] = 1
	case codes.Error:
		status["code"], status["message"] = 2, s.Status().Description
	}
	out := object{
		"traceId": c.TraceID().String(), "spanId": c.SpanID().String(), "traceState": c.TraceState().String(), "flags": flags,
		"name": s.Name(), "kind": int(s.SpanKind()), "status": status,
		"startTimeUnixNano": strconv.FormatInt(s.StartTime().UnixNano(), 10), "endTimeUnixNano": strconv.FormatInt(s.EndTime().UnixNano(), 10),
		"attributes": attributes(s.Attributes()), "droppedAttributesCount": s.DroppedAttributes(),
	}
	if parent := s.Parent().SpanID(); parent.IsValid() {
		out["parentSpanId"] = parent.String()
	}
	return out
}

func attributes(list []attribute.KeyValue) []object {
	out := make([]object, len(list))
	for i, a := range list {
		var value object
		switch a.Value.Type() {
		case attribute.BOOL:
			value = object{"boolValue": a.Value.AsBool()}
		case attribute.INT64:
			value = object{"intValue": strconv.FormatInt(a.Value.AsInt64(), 10)}
		case attribute.FLOAT64:
			value = object{"doubleValue": a.Value.AsFloat64()}
		default: // text, and lists, which only a resource can have
			value = object{"stringValue": fmt.Sprint(a.Value.AsInterface())}
		}
		out[i] = object{"key": string(a.Key), "value": value}
	}
	return out
}
