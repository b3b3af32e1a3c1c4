//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// A verdict is what RFC 9112 and RFC 9110 leave to a proxy that gets an answer.
type verdict int

const (
	whole  verdict = iota // it must pass, as it was read
	lax                   // it may be refused; if it passes, then as it was read
	broken                // it must be refused, or cut where it breaks, and never be stored
)

func (v verdict) String() string { return []string{"whole", "lax", "broken"}[v] }

// A judged answer is an answer as the text of the RFCs has it: a second implementation, which is slow and
// reads everything at once.
type judged struct {
	verdict verdict
	why     []string // what is wrong with it, by section
	status  int
	fields  [][2]string // of the final answer, without trailers
	body    string      // as far as it came
	rest    int         // bytes behind its end
	open    bool        // it ends with its connection
	trailed bool        // it has trailers
}

func (j *judged) is(v verdict, why string) {
	if v > 0 && !slices.Contains(j.why, why) {
		j.why = append(j.why, why)
	}
	j.verdict = max(j.verdict, v)
}

// headerMost is the limit of a peer for the header of an answer. Nothing near it is sent.
const headerMost = 256 << 10

// judge reads what an origin sent on a connection for one request. It closed the connection after
// that, unless it stalled.
func judge(method string, raw []byte, stalled bool) (j judged) {
	for range 100 {
		head, rest := j.head(raw)
		if j.verdict == broken {
			return j
		}
		raw = rest
		if j.status/100 != 1 {
			j.framed(method, head, raw, stalled)
			return j
		}
		if j.status == http.StatusSwitchingProtocols {
			j.is(broken, "9110 15.2.2: 101 without an upgrade")
			return j
		}
	}
	return j
}

// head reads a status line and its fields. It returns the version, and what comes behind.
func (j *judged) head(raw []byte) (version string, rest []byte) {
	line, rest, ok := j.line(raw)
	if !ok {
		return "", nil
	}
	version, status, _ := strings.Cut(line, " ")
	code, reason, spaced := strings.Cut(status, " ")
	switch {
	case version == "HTTP/1.1" || version == "HTTP/1.0":
	case len(version) == 8 && strings.HasPrefix(version, "HTTP/1.") && version[7] >= '2' && version[7] <= '9':
		j.is(lax, "9110 2.5: a minor version that is to come")
	default:
		j.is(broken, "9112 2.3: not HTTP/1")
	}
	j.status, _ = strconv.Atoi(code)
	switch {
	case len(code) != 3 || strings.Trim(code, "0123456789") != "":
		j.is(broken, "9112 4: a status is three digits")
	case j.status < 100 || j.status > 599:
		j.is(broken, "9110 15: no valid status")
	}
	if !spaced {
		j.is(lax, "9112 4: no space behind the status")
	}
	if strings.ContainsFunc(reason, control) {
		j.is(lax, "9112 4: a control byte in the reason")
	}
	if j.verdict == broken {
		return version, nil
	}
	j.fields, rest = j.section(rest)
	return version, rest
}

// line returns the first line, without its end.
func (j *judged) line(raw []byte) (line string, rest []byte, ok bool) {
	text, rest, ended := bytes.Cut(raw, []byte("\n"))
	if !ended {
		j.is(broken, "9112 8: it ends in its header")
		return "", nil, false
	}
	if !bytes.HasSuffix(text, []byte("\r")) {
		j.is(lax, "9112 2.2: LF alone")
	}
	line = strings.TrimSuffix(string(text), "\r")
	if strings.Contains(line, "\r") {
		j.is(broken, "9112 2.2: CR alone")
		return "", nil, false
	}
	return line, rest, true
}

func control(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

// section reads fields up to the empty line behind them.
func (j *judged) section(raw []byte) (fields [][2]string, rest []byte) {
	for all := len(raw); ; {
		line, rest, ok := j.line(raw)
		if raw = rest; !ok || line == "" {
			return fields, rest
		}
		if all-len(rest) > headerMost/2 {
			j.is(lax, "9110 5.4: a long header")
		}
		name, value, colon := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		switch {
		case strings.ContainsRune(line, 0):
			j.is(broken, "9110 5.5: NUL")
		case strings.ContainsFunc(value, control):
			j.is(lax, "9110 5.5: a control byte in a value")
		}
		switch {
		case (line[0] == ' ' || line[0] == '\t') && len(fields) == 0:
			j.is(broken, "9112 2.2: a blank before the first field")
		case line[0] == ' ' || line[0] == '\t':
			j.is(lax, "9112 5.2: folded")
			last := &fields[len(fields)-1]
			last[1] = strings.Trim(last[1]+" "+strings.Trim(line, " \t"), " \t")
			continue
		case !colon:
			j.is(broken, "9112 5: a line without a colon")
		case strings.TrimRight(name, " \t") != name && httpguts.ValidHeaderFieldName(strings.TrimRight(name, " \t")):
			j.is(broken, "9112 5.1: a blank before the colon")
		case !httpguts.ValidHeaderFieldName(name):
			j.is(broken, "9110 5.1: a name that is no token")
		}
		if j.verdict == broken {
			return nil, nil
		}
		fields = append(fields, [2]string{http.CanonicalHeaderKey(name), value})
	}
}

// list returns the members of a field that is a list, of all of its lines.
func (j *judged) list(name string) (members []string) {
	for _, f := range j.fields {
		if f[0] == name {
			for m := range strings.SplitSeq(f[1], ",") {
				members = append(members, strings.Trim(m, " \t"))
			}
		}
	}
	return members
}

// framed finds the end of the answer, by RFC 9112 section 6.3.
func (j *judged) framed(method, version string, raw []byte, stalled bool) {
	codings, lengths := j.list("Transfer-Encoding"), j.list("Content-Length")
	length, framing := int64(-1), verdict(whole)
	fault := func(v verdict, why string) {
		if v > 0 {
			framing = max(framing, v)
			j.why = append(j.why, why)
		}
	}
	for i, l := range lengths {
		n, err := strconv.ParseInt(l, 10, 64)
		switch {
		case err != nil || strings.Trim(l, "0123456789") != "":
			fault(broken, "9112 6.3: a length that is none")
		case i > 0 && n != length:
			fault(broken, "9112 6.3: lengths that differ")
		case i > 0:
			fault(lax, "9110 8.6: a length twice")
		case len(l) > 18:
			fault(lax, "9110 8.6: a long length")
		}
		length = n
	}
	if len(codings) > 0 {
		switch real := strings.ToLower(strings.Trim(strings.Join(codings, ","), ",")); {
		case version == "HTTP/1.0":
			fault(broken, "9112 6.1: a transfer coding by HTTP/1.0")
		case len(lengths) > 0:
			fault(broken, "9112 6.3: a transfer coding and a length")
		case real != "chunked":
			fault(broken, "9112 6.1: a transfer coding that nobody asked for, or twice")
		case len(codings) > 1:
			fault(lax, "9110 5.6.1: empty members of a list")
		}
	}
	if method == "HEAD" || j.status == http.StatusNoContent || j.status == http.StatusNotModified {
		// Nothing depends on them.
		j.verdict, j.rest = max(j.verdict, min(framing, lax)), len(raw)
		return
	}
	if j.verdict = max(j.verdict, framing); j.verdict == broken {
		return
	}
	switch {
	case len(codings) > 0:
		j.chunks(raw)
	case length >= 0:
		n := min(length, int64(len(raw)))
		if j.body, j.rest = string(raw[:n]), len(raw)-int(n); n < length {
			j.is(broken, "9112 8: it ends before its length")
		}
	default:
		if j.body, j.open = string(raw), true; stalled {
			j.is(broken, "9112 8: it never ends")
		}
	}
	if j.rest > 0 {
		j.is(lax, "9112 6.3: bytes behind it")
	}
}

// chunks reads a body in chunks, and its trailers, by RFC 9112 section 7.1.
func (j *judged) chunks(raw []byte) {
	for {
		text, rest, ended := bytes.Cut(raw, []byte("\n"))
		line, terminated := strings.CutSuffix(string(text), "\r")
		digits := line[:len(line)-len(strings.TrimLeft(line, "0123456789abcdefABCDEF"))]
		extension := line[len(digits):]
		size, err := strconv.ParseInt(digits, 16, 64)
		switch {
		case !ended:
			j.is(broken, "9112 8: it ends before its last chunk")
		case !terminated:
			j.is(broken, "9112 7.1: a chunk's line that LF alone ends")
		case err != nil:
			j.is(broken, "9112 7.1: a chunk's size that is none")
		case strings.Trim(extension, " \t") == "" && extension != "":
			j.is(lax, "9112 7.1: blanks behind a chunk's size")
		case extension != "" && !strings.HasPrefix(strings.TrimLeft(extension, " \t"), ";"):
			j.is(broken, "9112 7.1: a chunk's size that is none")
		case strings.ContainsFunc(extension, control):
			j.is(broken, "9112 7.1.1: a control byte in a chunk's line")
		case len(digits) > 16:
			j.is(lax, "9112 7.1: a long size")
		case len(extension) > 4<<10:
			j.is(lax, "9112 7.1.1: a long extension")
		case extension != "" && !plainExtension(extension):
			j.is(lax, "9112 7.1.1: an extension that is none")
		}
		if raw = rest; j.verdict == broken {
			return
		}
		if size == 0 {
			break
		}
		n := min(size, int64(len(raw)))
		j.body += string(raw[:n])
		if raw = raw[n:]; !bytes.HasPrefix(raw, []byte("\r\n")) {
			j.is(broken, "9112 7.1: no CRLF behind a chunk")
			return
		}
		raw = raw[2:]
	}
	fields := j.fields
	trailers, rest := j.section(raw)
	j.trailed = len(trailers) > 0
	if j.fields, j.rest = fields, len(rest); len(raw)-len(rest) > 4<<10 {
		j.is(lax, "9112 7.1.2: long trailers")
	}
}

// plainExtension reports whether chunk extensions are tokens, without blanks.
func plainExtension(ext string) bool {
	for part := range strings.SplitSeq(strings.TrimPrefix(ext, ";"), ";") {
		name, value, has := strings.Cut(part, "=")
		if !httpguts.ValidHeaderFieldName(name) || has && !httpguts.ValidHeaderFieldName(value) {
			return false
		}
	}
	return true
}

// passing returns the fields that clients must get: all but those of one hop.
func (j *judged) passing() http.Header {
	out := make(http.Header)
	for _, f := range j.fields {
		out.Add(f[0], f[1])
	}
	for _, name := range j.list("Connection") {
		if name = http.CanonicalHeaderKey(name); !obeyed[name] {
			out.Del(name)
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding",
		"Upgrade", "Content-Length"} {
		out.Del(name)
	}
	return out
}

// obeyed are fields that are never appropriate as connection options (RFC 9110, section 7.6.1).
var obeyed = map[string]bool{"Cache-Control": true, "Vary": true, "Expires": true, "Set-Cookie": true, "Age": true, "Date": true,
	"Etag": true, "Last-Modified": true, "Content-Type": true, "Content-Encoding": true, "Content-Length": true}

// reason is the fault that decides; "" = none.
func (j judged) reason() string {
	if j.verdict == broken {
		return j.why[len(j.why)-1]
	}
	return strings.Join(j.why, "; ")
}

func (j judged) String() string {
	return fmt.Sprintf("%v (%s): %d, %d bytes, %d behind", j.verdict, strings.Join(j.why, "; "), j.status, len(j.body), j.rest)
}
