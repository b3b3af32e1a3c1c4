package squid

import (
	"crypto/md5"
	"encoding/binary"
	"strings"
)

// A Key stands for one response in a digest.
type Key [md5.Size]byte

// A Method is a request method, as a byte of a key's input.
type Method byte

// Methods, with Squid's numbers. A response to HEAD has a key of its own.
const (
	Get  Method = 1
	Head Method = 4
)

// KeyOf returns the key of the response to a URL: absolute, scheme and host in lower case, without user and
// default port, "/" for an empty path, and the rest as the client has sent it. mark is its
// [VaryMark], or "" if the response does not vary. Squid also uses "" for the marker by which
// it remembers that responses to the URL vary, so the key with mark "" may match because of any
// variant. MD5 is no protection: an attacker can choose URLs that fill a digest.
func KeyOf(m Method, url, mark string) Key {
	b := make([]byte, 0, 256)
	b = append(b, byte(m))
	b = append(b, url...)
	return md5.Sum(append(b, mark...))
}

// word is one of the key's four hash values.
func (k *Key) word(i int) uint32 { return binary.BigEndian.Uint32(k[4*i:]) }

// VaryMark returns what distinguishes the variants of one URL: the fields that the response's
// Vary names, in its order, each with the request's value. value returns a field of the request
// unchanged, several lines joined by ", ", and whether the request has it. A Squid does not
// normalise values: equivalent values that are written differently have different marks.
func VaryMark(fields []string, value func(name string) (string, bool)) string {
	var b strings.Builder
	for i, name := range fields {
		if name == "*" {
			return "*"
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strings.ToLower(name))
		if v, ok := value(name); ok {
			b.WriteString(`="`)
			escape(&b, v)
			b.WriteByte('"')
		}
	}
	return b.String()
}

// reserved are the printing characters that a mark has in escaped form: those that RFC 1738
// calls unsafe or reserved.
const reserved = "<>\"#{}|\\^~[]`'%;/?:@=&"

func escape(b *strings.Builder, s string) {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(reserved, c) >= 0 {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
}
