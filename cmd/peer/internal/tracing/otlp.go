package tracing

import (
	"fmt"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// The JSON of an ExportTraceServiceRequest (opentelemetry-proto, and the section
// "JSON Protobuf Encoding" of the OTLP specification): identifiers in hex, 64-bit
// numbers as strings, enumerations as numbers.

type exportRequest struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resourceOf   `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
	SchemaURL  string       `json:"schemaUrl,omitempty"`
}

type resourceOf struct {
	Attributes []keyValue `json:"attributes"`
}

type scopeSpans struct {
	Scope scopeOf    `json:"scope"`
	Spans []spanJSON `json:"spans"`
}

type scopeOf struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type spanJSON struct {
	TraceID      string     `json:"traceId"`
	SpanID       string     `json:"spanId"`
	TraceState   string     `json:"traceState,omitempty"`
	ParentSpanID string     `json:"parentSpanId,omitempty"`
	Flags        uint32     `json:"flags"`
	Name         string     `json:"name"`
	Kind         int        `json:"kind"`
	Start        string     `json:"startTimeUnixNano"`
	End          string     `json:"endTimeUnixNano"`
	Attributes   []keyValue `json:"attributes,omitempty"`
	Dropped      int        `json:"droppedAttributesCount,omitempty"`
	Status       statusJSON `json:"status"`
}

type statusJSON struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

type keyValue struct {
	Key   string   `json:"key"`
	Value anyValue `json:"value"`
}

// anyValue has one of its fields.
type anyValue struct {
	String *string  `json:"stringValue,omitempty"`
	Bool   *bool    `json:"boolValue,omitempty"`
	Int    *string  `json:"intValue,omitempty"`
	Double *float64 `json:"doubleValue,omitempty"`
}

// requestOf describes the spans of one provider, which has one resource and,
// here, one scope.
func requestOf(spans []sdk.ReadOnlySpan) exportRequest {
	if len(spans) == 0 {
		return exportRequest{}
	}
	first := spans[0]
	out := resourceSpans{
		Resource:   resourceOf{Attributes: attributes(first.Resource().Attributes())},
		SchemaURL:  first.Resource().SchemaURL(),
		ScopeSpans: []scopeSpans{{Scope: scopeOf{first.InstrumentationScope().Name, first.InstrumentationScope().Version}}},
	}
	for _, s := range spans {
		out.ScopeSpans[0].Spans = append(out.ScopeSpans[0].Spans, spanOf(s))
	}
	return exportRequest{ResourceSpans: []resourceSpans{out}}
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
		Start: strconv.FormatInt(s.StartTime().UnixNano(), 10), End: strconv.FormatInt(s.EndTime().UnixNano(), 10),
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
		out[i].Key = string(a.Key)
		v := &out[i].Value
		switch a.Value.Type() {
		case attribute.BOOL:
			b := a.Value.AsBool()
			v.Bool = &b
		case attribute.INT64:
			n := strconv.FormatInt(a.Value.AsInt64(), 10)
			v.Int = &n
		case attribute.FLOAT64:
			f := a.Value.AsFloat64()
			v.Double = &f
		case attribute.STRING:
			s := a.Value.AsString()
			v.String = &s
		default: // lists, which only a resource has, if somebody makes it
			s := fmt.Sprint(a.Value.AsInterface())
			v.String = &s
		}
	}
	return out
}
