package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// parseJSON reads a line of package accesslog, of Caddy, or of nginx with keys named like its variables or as is usual.
func parseJSON(line string) (r Request, err error) {
	o, err := object(line)
	if err != nil {
		return r, err
	}
	if inner, err := object(string(o["request"])); err == ambiguous {
		return r, err
	} else if err == nil { // Caddy's
		if _, tls := inner["tls"]; tls {
			inner["scheme"] = json.RawMessage(`"https"`)
		}
		maps.Copy(inner, o)
		o = inner
	}
	e := entry{
		client: o.text("client", "client_ip", "remote_ip", "remote_addr", "clientip", "ip"),
		site:   o.text("http_host", "host", "server_name", "domain", "vhost"),
		method: o.text("method", "request_method"), target: o.text("request_uri"), status: o.text("status"),
		size:    o.text("bytes", "body_bytes_sent", "size", "bytes_sent", "length"),
		partial: o.text("broken") == "true",
	}
	if o.text("scheme") == "https" {
		e.site = "https://" + e.site
	}
	if method, target := call(o.text("request")); e.method == "" || target != "" {
		e.method, e.target = method, target
	}
	if e.target == "" {
		e.target = o.text("uri", "url", "path")
		if query := o.text("args", "query_string"); query != "" && !strings.Contains(e.target, "?") {
			e.target += "?" + query
		}
	}
	if e.method == "" && o["request"] == nil && o["method"] == nil && o["request_method"] == nil {
		return r, errors.New("a method is missing")
	} else if e.status == "" {
		return r, errors.New("a status is missing")
	}
	stamp := o.text("ts", "msec", "time", "time_iso8601", "time_local", "@timestamp", "timestamp", "date")
	if e.seconds, err = strconv.ParseFloat(stamp, 64); err != nil {
		e.seconds, err = moment(stamp)
	} else if e.seconds > 1e11 {
		e.seconds /= 1e3 // milliseconds
	}
	if err != nil || !(e.seconds >= 0 && e.seconds <= maxSeconds) {
		return r, fmt.Errorf("time %s is missing or unknown", quote(stamp))
	}
	e.client = host(e.client)
	return e.request()
}

// fields are the fields of a JSON object.
type fields map[string]json.RawMessage

// object reads a JSON object. A key that comes twice has two meanings: whoever sent the request may have written one
// of them, in a log that does not escape quotes.
func object(text string) (fields, error) {
	d := json.NewDecoder(strings.NewReader(hexEscapes(text)))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("no JSON object")
	}
	o := fields{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errors.New("broken JSON")
		}
		name, _ := key.(string)
		if _, twice := o[name]; twice {
			return nil, ambiguous
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errors.New("broken JSON")
		}
		o[name] = value
	}
	if _, err := d.Token(); err != nil || d.More() {
		return nil, errors.New("broken JSON")
	}
	return o, nil
}

// hexEscapes turns nginx's escapes without escape=json, such as \x22, into those of JSON.
func hexEscapes(text string) string {
	if !strings.Contains(text, `\x`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && strings.HasPrefix(text[i+1:], "x"):
			if c := unescape(text[i:min(len(text), i+4)]); len(c) == 1 && c[0] >= 0x80 {
				b.WriteString(c) // a part of UTF-8
			} else if len(c) == 1 {
				fmt.Fprintf(&b, `\u%04x`, c[0])
			}
			i += 3
		case text[i] == '\\' && i+1 < len(text):
			b.WriteString(text[i : i+2])
			i++
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// text returns the first of these fields that says something.
func (o fields) text(names ...string) string {
	for _, name := range names {
		var s string
		if json.Unmarshal(o[name], &s) != nil {
			s = strings.Trim(string(o[name]), "[]{}")
		}
		if s != "" && s != "-" && s != "null" {
			return s
		}
	}
	return ""
}
