package http1

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

const defaultHeader = 256 << 10

var errLong = errors.New("it is too long")

// malformed is an answer that breaks the rules of a section of RFC 9112, or of RFC 9110 if it is so said.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrMalformed, fmt.Errorf(format, args...))
}

// A head is an answer without its body.
type head struct {
	minor  int // of its version
	status int
	text   string // "200 OK"
	fields http.Header
}

// readHead reads the next header, of up to most bytes, and returns its length.
func (c *conn) readHead(most int) (h head, length int, err error) {
	line, at := 0, 0 // where the line begins, and what is looked at next, from c.from on
	for {            // each round but the last has a byte more
		for p := c.rest(); at < len(p); at++ {
			if p[at] != '\n' {
				continue
			}
			if at == line || p[at-1] != '\r' {
				return h, 0, malformed("section 2.2: a line ends with LF alone")
			}
			if at == line+1 {
				if line == 0 {
					return h, 0, malformed("section 4: it begins with an empty line")
				}
				length = at + 1
				text := string(p[:line])
				c.from += length
				h, err = parseHead(text)
				return h, length, err
			}
			line = at + 1
		}
		if at >= most {
			return h, 0, malformed("its header is longer than %d bytes", most)
		}
		if err := c.fill(most); err != nil {
			if err == errLong {
				err = malformed("its header is longer than %d bytes", most)
			}
			return h, 0, err
		}
	}
}

// parseHead reads a status line and fields, each with its CRLF.
func parseHead(text string) (h head, err error) {
	line, rest, _ := strings.Cut(text, "\r\n")
	version, after, _ := strings.Cut(line, " ")
	code, reason, _ := strings.Cut(after, " ")
	if len(version) != len("HTTP/1.1") || !strings.HasPrefix(version, "HTTP/1.") || !digits(version[7:]) {
		return h, malformed("section 4: it begins with %.40q", line)
	}
	if len(code) != 3 || !digits(code) || !httpguts.ValidHeaderFieldValue(reason) {
		return h, malformed("section 4: its status line is %.80q", line)
	}
	h.minor = int(version[7] - '0')
	h.status, _ = strconv.Atoi(code)
	h.text = after
	if h.status < 100 || h.status > 599 {
		return h, malformed("RFC 9110 section 15: its status is %s", code)
	}
	h.fields, err = parseFields(rest)
	return h, err
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// parseFields reads fields, each of which ends with CRLF.
func parseFields(text string) (http.Header, error) {
	n := strings.Count(text, "\n")
	fields, values := make(http.Header, n), make([]string, n)
	for i := 0; text != ""; i++ { // each round reads a line
		var line string
		line, text, _ = strings.Cut(text, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		if !ok || !httpguts.ValidHeaderFieldName(name) { // this refuses folded lines, too
			return nil, malformed("section 5.1: the name of a field is no token: %.80q", line)
		}
		values[i] = strings.Trim(value, " \t")
		if !httpguts.ValidHeaderFieldValue(values[i]) {
			return nil, malformed("section 5.5: a field has a control character: %.80q", line)
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		if lines := fields[name]; lines != nil {
			fields[name] = append(lines, values[i])
		} else {
			fields[name] = values[i : i+1 : i+1]
		}
	}
	return fields, nil
}

// bodyless reports whether an answer ends with its header (section 6.3).
func bodyless(method string, status int) bool {
	return method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified || status < 200
}

const (
	chunked = -2
	toEnd   = -1
)

// framing returns how long the body of an answer is by its fields: its length, chunked or toEnd (section 6.3). It takes
// Transfer-Encoding off them.
func (h *head) framing() (int64, error) {
	lengths, codings := h.fields["Content-Length"], h.fields["Transfer-Encoding"]
	switch {
	case codings != nil && h.minor == 0:
		return 0, malformed("section 6.1: HTTP/1.0 with Transfer-Encoding")
	case codings != nil && lengths != nil:
		return 0, malformed("section 6.1: Transfer-Encoding and Content-Length")
	case codings != nil:
		if len(codings) != 1 || !strings.EqualFold(codings[0], "chunked") {
			return 0, malformed("section 6.1: the transfer coding is %.80q", codings)
		}
		delete(h.fields, "Transfer-Encoding")
		return chunked, nil
	case lengths == nil:
		return toEnd, nil
	case len(lengths) > 1 || len(lengths[0]) > 18 || !digits(lengths[0]):
		return 0, malformed("section 6.3: Content-Length is %.80q", lengths)
	}
	return strconv.ParseInt(lengths[0], 10, 64)
}

// has reports whether one of the members of a field is a word, in lower case.
func has(lines []string, word string) bool {
	return len(lines) > 0 && httpguts.HeaderValuesContainsToken(lines, word)
}
