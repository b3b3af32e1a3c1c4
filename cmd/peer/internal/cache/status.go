package cache

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// statusName returns a cache's name as it stands in Cache-Status: a token if it
// can be one, else a string (RFC 9211 section 2).
func statusName(name string) string {
	token := name != ""
	for i := range len(name) {
		c := name[i]
		alpha := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '*'
		token = token && (alpha || i > 0 && strings.IndexByte("0123456789!#$%&'+-.^_`|~:/", c) >= 0)
	}
	if token {
		return name
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
}

// status is this cache's member of Cache-Status for one answer. The zero value
// says only that the cache handled it.
type status struct {
	hit       bool
	ttl       time.Duration // remaining freshness, with hasTTL
	hasTTL    bool
	fwd       string // why the request went forward
	fwdStatus int    // what came back; 0 = nothing
	stored    bool
	collapsed bool
	detail    string // a token
}

func (c *Cache) formatStatus(s status) string {
	return string(c.appendStatus(make([]byte, 0, 96), s))
}

func (c *Cache) appendStatus(b []byte, s status) []byte {
	b = append(b, c.statusName...)
	if s.hit {
		b = append(b, "; hit"...)
	}
	if s.fwd != "" {
		b = append(b, "; fwd="...)
		b = append(b, s.fwd...)
		if s.fwdStatus != 0 {
			b = append(b, "; fwd-status="...)
			b = strconv.AppendInt(b, int64(s.fwdStatus), 10)
		}
	}
	if s.hasTTL {
		b = append(b, "; ttl="...)
		b = strconv.AppendInt(b, seconds(s.ttl), 10)
	}
	if s.stored {
		b = append(b, "; stored"...)
	}
	if s.collapsed {
		b = append(b, "; collapsed"...)
	}
	if s.detail != "" {
		b = append(b, "; detail="...)
		b = append(b, s.detail...)
	}
	return b
}

// addStatus appends our member after those of the caches nearer to the origin.
func (c *Cache) addStatus(h http.Header, s status) {
	old := h["Cache-Status"]
	h["Cache-Status"] = append(old[:len(old):len(old)], c.formatStatus(s))
}

// seconds rounds down, also below zero.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d < 0 && d%time.Second != 0 {
		s--
	}
	return s
}

// Name returns the cache's name as it stands in Cache-Status.
func (c *Cache) Name() string { return c.statusName }
