package rfc9111

import (
	"iter"
	"net/http"
	"strings"
)

// Members yields the trimmed members of a list field, from all of its lines (RFC 9110
// section 5.6.1). Quoted strings may contain commas. Empty members are left out.
func Members(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range lines {
			for line != "" {
				var member string
				if member, line = cutList(line); member != "" && !yield(member) {
					return
				}
			}
		}
	}
}

// cutList splits a comma-separated list after its first element. Quoted strings may contain
// commas. The element is trimmed and may be empty.
func cutList(s string) (item, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return trim(s[:i]), s[i+1:]
		}
	}
	return trim(s), ""
}

// unquote returns the value of a token or a quoted string; ok is false if a
// quoted string is not closed.
func unquote(s string) (v string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return s, true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), i == len(s)-1
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// appendFields appends the canonical field names of a list.
func appendFields(dst []string, lines ...string) []string {
	for name := range Members(lines) {
		dst = append(dst, http.CanonicalHeaderKey(name))
	}
	return dst
}

// hasToken reports whether a list field has a token, in any case.
func hasToken(lines []string, token string) bool {
	for item := range Members(lines) {
		if strings.EqualFold(item, token) {
			return true
		}
	}
	return false
}

// IsToken reports whether s is a token, such as the name of a field (RFC 9110 section 5.6.2).
func IsToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

func trim(s string) string { return strings.Trim(s, " \t") }
