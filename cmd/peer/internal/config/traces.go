package config

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// findCollector determines where traces are sent: to --otlp-endpoint or, without it, to the
// endpoint of OpenTelemetry's own variables, by the rules of its specification. Header fields and
// timeout come from these variables in either case.
func (c *checker) findCollector() {
	endpoint, path := c.OTLP, "/v1/traces"
	if endpoint == "" {
		if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
			return
		}
		endpoint = otel("ENDPOINT")
		if os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" {
			path = "" // this variable has the complete URL
		}
	}
	if endpoint == "" {
		return
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		c.fail("otlp-endpoint", endpoint, errors.New("is not a URL"))
		return
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		c.fail("otlp-endpoint", endpoint, errors.New("is not a URL such as http://HOST:PORT"))
		return
	}
	if path != "" && !strings.HasSuffix(u.Path, path) {
		u = u.JoinPath(path)
	}
	c.Traces, c.TraceHeader = u, traceHeader(otel("HEADERS"))
	if ms, err := strconv.ParseUint(otel("TIMEOUT"), 10, 31); err == nil {
		c.TraceTimeout = time.Duration(ms) * time.Millisecond
	}
}

// otel returns OpenTelemetry's variable for traces or, if that is not set, the one for all signals.
func otel(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
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
