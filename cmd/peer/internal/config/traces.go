package config

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// traces says where traces go: to the endpoint that is set or else, if there is
// one, to that of OpenTelemetry's own variables, by the rules of its specification.
// Those say more than where in either case.
func (c *checker) traces(endpoint string, out *Config) {
	from, path := endpoint, "/v1/traces"
	if from == "" {
		if from = os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); from != "" {
			path = "" // it is meant as it stands
		} else {
			from = os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
		}
		if off := strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none"; off {
			return
		}
	}
	if from == "" {
		return
	}
	u, err := url.Parse(from)
	switch {
	case err != nil:
		c.fail("otlp-endpoint", from, errors.New("is no URL"))
		return
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		c.fail("otlp-endpoint", from, errors.New("is not like http://HOST:PORT or https"))
		return
	}
	if path != "" && !strings.HasSuffix(u.Path, path) {
		u = u.JoinPath(path)
	}
	out.Traces = u
	variable := func(name string) string {
		if v := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_" + name); v != "" {
			return v
		}
		return os.Getenv("OTEL_EXPORTER_OTLP_" + name)
	}
	out.TraceHeader = traceHeader(variable("HEADERS"))
	if ms, err := strconv.ParseUint(variable("TIMEOUT"), 10, 31); err == nil {
		out.TraceTimeout = time.Duration(ms) * time.Millisecond
	}
}

// traceHeader reads "name=value,name=value", percent-encoded.
func traceHeader(s string) map[string]string {
	header := make(map[string]string)
	for field := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(field, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); ok && err == nil && name != "" {
			header[http.CanonicalHeaderKey(name)] = value
		}
	}
	return header
}
