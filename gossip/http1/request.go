package http1

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// unknown is the length of a request's body that is sent chunked.
const unknown = -1

// lengthOf returns the length of a request's body; 0 = it has none.
func lengthOf(r *http.Request) int64 {
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		return 0
	case r.ContentLength > 0:
		return r.ContentLength
	}
	return unknown
}

// appendRequest appends the header of a request with a body of that length. Its fields are sorted, so that equal
// requests are equal bytes.
func appendRequest(p []byte, r *http.Request, length int64) ([]byte, error) {
	host, err := httpguts.PunycodeHostPort(cmp.Or(r.Host, r.URL.Host))
	target := r.URL.RequestURI()
	if strings.ContainsFunc(target, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		err = errors.New("its target has a blank or a control character")
	}
	if err != nil {
		return p, errors.Join(ErrInvalid, err)
	}
	p = append(append(append(p, cmp.Or(r.Method, http.MethodGet)...), ' '), target...)
	p = append(p, " HTTP/1.1\r\n"...)
	p = appendField(p, "Host", withoutZone(host))
	switch {
	case length == unknown:
		p = appendField(p, "Transfer-Encoding", "chunked")
		if len(r.Trailer) > 0 {
			p = appendField(p, "Trailer", strings.Join(sortedNames(nil, r.Trailer), ","))
		}
	case length > 0 || r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch:
		p = append(strconv.AppendInt(append(p, "Content-Length: "...), length, 10), "\r\n"...)
	}
	if r.Close {
		p = appendField(p, "Connection", "close")
	}
	var room [24]string
	for _, name := range sortedNames(room[:0], r.Header) {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
			continue
		case "User-Agent":
			if r.Header[name] == nil || r.Header[name][0] == "" { // net/http sends none then
				continue
			}
		}
		for _, v := range r.Header[name] {
			p = appendField(p, name, v)
		}
	}
	return append(p, "\r\n"...), nil
}

func appendField(p []byte, name, value string) []byte {
	p = append(append(p, name...), ": "...)
	return append(append(p, value...), "\r\n"...)
}

func sortedNames(names []string, h http.Header) []string {
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// withoutZone takes the zone off an IPv6 address, which means something on this machine only (RFC 6874 section 4).
func withoutZone(host string) string {
	zone, end := strings.IndexByte(host, '%'), strings.LastIndexByte(host, ']')
	if host[:1] != "[" || zone < 0 || end < zone {
		return host
	}
	return host[:zone] + host[end:]
}
