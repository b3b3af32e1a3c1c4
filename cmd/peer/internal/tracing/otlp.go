package tracing

import (
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// The JSON of an ExportTraceServiceRequest (opentelemetry-proto, and the section
// "JSON Protobuf Encoding" of the OTLP specification): identifiers in hex, 64-bit
// numbers as strings, enumerations as numbers. Spans have a struct type because there are many: maps
// would take nine times as long.
type (
	object map[string]any

	spanJSON struct {
		TraceID      string     `json:"traceId"`
		SpanID       string     `json:"spanId"`
		TraceState   string     `json:"traceState,omitempty"`
		ParentSpanID string     `json:"parentSpanId,omitempty"`
		Flags        uint32     `json:"flags"`
		Name         string     `json:"name"`
		Kind         int        `json:"kind"`
		Start        int64      `json:"startTimeUnixNano,string"`
		End          int64      `json:"endTimeUnixNano,string"`
		Attributes   []keyValue `json:"attributes,omitempty"`
		Dropped      int        `json:"droppedAttributesCount,omitempty"`
		Status       statusJSON `json:"status"`
	}
	statusJSON struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
	keyValue struct {
		Key   attribute.Key `json:"key"`
		Value any           `json:"value"` // one of the following
	}
	boolValue struct {
		V bool `json:"boolValue"`
	}
	intValue struct {
		V int64 `json:"intValue,string"`
	}
	doubleValue struct {
		V float64 `json:"doubleValue"`
	}
	stringValue struct {
		V string `json:"stringValue"`
	}
)

// requestOf returns the export request for at least one span of a single provider, which has one
// resource and one scope.
func requestOf(spans []sdk.ReadOnlySpan) object {
	list := make([]spanJSON, len(spans))
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

func spanOf(s sdk.ReadOnlySpan) spanJSON {
	c, parent := s.SpanContext(), s.Parent()
	out := spanJSON{
		TraceID: c.TraceID().String(), SpanID: c.SpanID().String(), TraceState: c.TraceState().String(),
		Flags: uint32(c.TraceFlags()) | parentKnown, Name: s.Name(), Kind: int(s.SpanKind()),
		Start: s.StartTime().UnixNano(), End: s.EndTime().UnixNano(),
		Attributes: attributes(s.Attributes()), Dropped: s.DroppedAttributes(),
	}
	if parent.SpanID().IsValid() {
		out.ParentSpanID = parent.SpanID().String()
	}
	if parent.IsRemote() {
		out.Flags |= parentRemote
	}
	switch s.Status().Code {
	case codes.Ok:
		out.Status.Code = 1
	case codes.Error:
		out.Status = statusJSON{2, s.Status().Description}
	}
	return out
}

func attributes(list []attribute.KeyValue) []keyValue {
	out := make([]keyValue, len(list))
	for i, a := range list {
		out[i].Key = a.Key
		switch a.Value.Type() {
		case attribute.BOOL:
			out[i].Value = boolValue{a.Value.AsBool()}
		case attribute.INT64:
			out[i].Value = intValue{a.Value.AsInt64()}
		case attribute.FLOAT64:
			out[i].Value = doubleValue{a.Value.AsFloat64()}
		default: // strings, and lists, which only resources have
			out[i].Value = stringValue{fmt.Sprint(a.Value.AsInterface())}
		}
	}
	return out
}
