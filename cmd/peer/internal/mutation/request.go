package mutation

import (
	"bytes"
	"fmt"
	"strings"
)

// A Request is a request as it is sent, byte by byte: nothing checks or corrects it.
type Request struct {
	Method, Version string // of HTTP/1; H2 decides about HTTP/2
	Authority       string // before the path, as in http://host; "" = origin-form
	Path, Query     string
	Fields          [][2]string // Host included
	Body            string
	H2              bool
	Scheme          string // of HTTP/2; "" = http
}

// Set replaces a field, or appends one.
func (r *Request) Set(name, value string) {
	for i := range r.Fields {
		if strings.EqualFold(r.Fields[i][0], name) {
			r.Fields[i][1] = value
			return
		}
	}
	r.Add(name, value)
}

// Add appends a field.
func (r *Request) Add(name, value string) { r.Fields = append(r.Fields, [2]string{name, value}) }

// Target returns what the request line names.
func (r *Request) Target() string {
	target := r.Authority + r.Path
	if r.Query != "" {
		target += "?" + r.Query
	}
	return target
}

// Bytes returns the request as HTTP/1.
func (r *Request) Bytes() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s\r\n", r.Method, r.Target(), r.Version)
	for _, f := range r.Fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	b.WriteString("\r\n" + r.Body)
	return b.Bytes()
}

// String shortens long values.
func (r *Request) String() string {
	text := r.Bytes()
	if r.H2 {
		text = append([]byte("as HTTP/2: "), text...)
	}
	if len(text) > 700 {
		return fmt.Sprintf("%.500q… (%d bytes)", text, len(text))
	}
	return fmt.Sprintf("%q", text)
}
