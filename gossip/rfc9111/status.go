package rfc9111

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// A Status is one cache's member of Cache-Status for one answer (RFC 9211). If only
// Cache is set, it says that the cache handled the request.
type Status struct {
	Cache     string // its name
	Hit       bool   // the answer is a stored response
	HasTTL    bool
	TTL       time.Duration // with HasTTL: remaining freshness, in whole seconds; negative = stale
	Fwd       string        // why the request was forwarded: a token; "" = it was not
	FwdStatus int           // of the response to the forwarded request; 0 = there was none
	Stored    bool
	Collapsed bool
	Detail    string // a token; "" = none
}

// Append appends the member as text to b.
func (s *Status) Append(b []byte) []byte {
	b = appendName(b, s.Cache)
	if s.Hit {
		b = append(b, "; hit"...)
	}
	if s.Fwd != "" {
		b = append(b, "; fwd="...)
		b = append(b, s.Fwd...)
	}
	if s.FwdStatus != 0 {
		b = append(b, "; fwd-status="...)
		b = strconv.AppendInt(b, int64(s.FwdStatus), 10)
	}
	if s.HasTTL {
		b = append(b, "; ttl="...)
		b = strconv.AppendInt(b, seconds(s.TTL), 10)
	}
	if s.Stored {
		b = append(b, "; stored"...)
	}
	if s.Collapsed {
		b = append(b, "; collapsed"...)
	}
	if s.Detail != "" {
		b = append(b, "; detail="...)
		b = append(b, s.Detail...)
	}
	return b
}

// Add appends the member to Cache-Status in h, after those of caches nearer to the origin.
func (s *Status) Add(h http.Header) {
	old := h["Cache-Status"]
	h["Cache-Status"] = append(old[:len(old):len(old)], string(s.Append(make([]byte, 0, 96))))
}

// LastStatus returns the last member of Cache-Status in h, which is that of the cache nearest to
// the client. ok is false if there is none or the field is malformed.
func LastStatus(h http.Header) (s Status, ok bool) {
	members, err := httpsfv.UnmarshalList(h["Cache-Status"])
	if err != nil || len(members) == 0 {
		return s, false
	}
	item, ok := members[len(members)-1].(httpsfv.Item)
	if !ok {
		return s, false
	}
	text := func(v any) string {
		switch v := v.(type) {
		case httpsfv.Token:
			return string(v)
		case string:
			return v
		}
		return ""
	}
	param := func(name string) any {
		v, _ := item.Params.Get(name)
		return v
	}
	ttl, hasTTL := param("ttl").(int64)
	status, _ := param("fwd-status").(int64)
	return Status{Cache: text(item.Value), Hit: param("hit") == true, HasTTL: hasTTL,
		TTL: time.Duration(ttl) * time.Second, Fwd: text(param("fwd")),
		FwdStatus: int(status), Stored: param("stored") == true, Collapsed: param("collapsed") == true,
		Detail: text(param("detail"))}, true
}

// appendName appends a cache's name as a token if possible, and otherwise as a string
// (RFC 9211 section 2).
func appendName(b []byte, name string) []byte {
	token := name != ""
	for i := range len(name) {
		c := name[i]
		alpha := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '*'
		token = token && (alpha || i > 0 && strings.IndexByte("0123456789!#$%&'+-.^_`|~:/", c) >= 0)
	}
	if token {
		return append(b, name...)
	}
	b = append(b, '"')
	for i := range len(name) {
		if name[i] == '"' || name[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, name[i])
	}
	return append(b, '"')
}

// seconds rounds down, also below zero.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d < 0 && d%time.Second != 0 {
		s--
	}
	return s
}
