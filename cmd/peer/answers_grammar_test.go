//go:build unix

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An answer is what an origin sends for one request, byte by byte: nothing checks or corrects it.
type answer struct {
	n      int
	method string
	kinds  []string // of what is odd about it

	before                  string // interim answers, or anything else
	version, status, reason string // with the blanks between them
	eol                     string
	lines                   []string // fields, each with its own end if that is not eol
	body                    string
	framing                 string   // length, chunks, close, or none
	framed                  []string // lines in place of those that the framing has
	payload                 *string  // in place of the body in its framing
	behind                  string   // in one write with the end
	late                    string   // once the client has its answer, and before the next request

	cut     int   // it ends so many bytes before its end; 0 = it is whole
	pauses  []int // a pause after so many bytes
	stalls  bool  // the origin neither goes on nor closes
	closes  bool
	written []byte // see raw
}

// mark is in what an origin sends for request n. left is in what it sends behind the answer.
func mark(n int) string { return fmt.Sprintf("[%08d]", n) }
func left(n int) string { return fmt.Sprintf("{%08d}", n) }

// second is a good answer, as one of another client's request would be.
func second(n int) string {
	return "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nX-For: " + left(n) + "\r\nContent-Length: 10\r\n\r\n" + left(n)
}

// raw returns what is sent before the origin waits or closes.
func (a *answer) raw() []byte {
	if a.written != nil {
		return a.written
	}
	var b bytes.Buffer
	b.WriteString(a.before + a.version + a.status + a.reason + a.eol)
	lines := a.lines
	switch {
	case a.framed != nil:
		lines = append(lines[:len(lines):len(lines)], a.framed...)
	case a.framing == "length":
		lines = append(lines[:len(lines):len(lines)], fmt.Sprintf("Content-Length: %d", len(a.body)))
	case a.framing == "chunks":
		lines = append(lines[:len(lines):len(lines)], "Transfer-Encoding: chunked")
	}
	for _, l := range lines {
		if b.WriteString(l); !strings.HasSuffix(l, "\n") {
			b.WriteString(a.eol)
		}
	}
	b.WriteString(a.eol)
	switch {
	case a.payload != nil:
		b.WriteString(*a.payload)
	case a.framing == "chunks":
		for rest := a.body; rest != ""; {
			part := rest[:min(len(rest), 1+a.n%40+len(a.body)/8)]
			rest = rest[len(part):]
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
		}
		b.WriteString("0\r\n\r\n")
	default:
		b.WriteString(a.body)
	}
	b.WriteString(a.behind)
	a.written = b.Bytes()[:max(0, b.Len()-a.cut)]
	return a.written
}

// An oddity is a kind of what may be odd about an answer.
type oddity struct {
	name   string
	weight int
	apply  func(rng *rand.Rand, a *answer)
}

func any1(rng *rand.Rand, options ...string) string { return options[rng.IntN(len(options))] }

// insert puts a line anywhere among the fields.
func (a *answer) insert(rng *rand.Rand, line string) {
	a.lines = slices.Insert(a.lines, rng.IntN(len(a.lines)+1), line)
}

var (
	oddVersions = []string{"HTTP/1.0", "HTTP/1.0", "HTTP/1.2", "HTTP/1.9", "HTTP/2.0", "HTTP/2", "HTTP/0.9", "HTTP/1.10", "HTTP/01.1", "http/1.1", "Http/1.1", "HTTP/1", "HTTP/1.", "HTTP/11", "HTTP /1.1", "HTTPS/1.1", "ICY", "RTSP/1.0",
		"", " HTTP/1.1", "\r\nHTTP/1.1", "\nHTTP/1.1", "\x00HTTP/1.1", "HTTP/1.1\x00", "HTTP/1,1", "HTTP\\1.1", "\xef\xbb\xbfHTTP/1.1", "HTTP/-1.1", "HTTP/1.1.1", "GET / HTTP/1.1", "<html>"}
	oddStatuses = []string{"099", "000", "042", "100", "150", "199", "600", "700", "999", "20", "2", "2000", "0200", "+200", "-200", "0x200", "2e2", "200.0", "20O", "2 00", "\t200", " 200", "200\t", "", "２００", "1000000000200", "18446744073709551816", "200,200", "304", "203", "226", "418", "599", "408", "500", "503"}
	oddReasons  = []string{"", " ", "  ", " \t OK", " OK ", " OK\t", " \x00", " O\x07K", " O\rK", " \xff\xfe", " Öl", " " + strings.Repeat("long ", 3000), " HTTP/1.1 200 OK", " OK: yes", "\tOK", " \x7f"}
	oddNames    = []string{"X A", "X-A ", "X-A\t", " X-A", "\tX-A", "", " ", "X\x00A", "X\x01A", "X\x7f", "X\x80", "É", "X(A)", "X@A", "\"X\"", "X,A", "X;A", "X=A", "X/A", "X[A]", "{X}", "X\\A", "X?", "X<A>", "X\x0bA", "X\rA", ":X", "X~!#$%&'*+.^_`|",
		"X_A", "1", strings.Repeat("N", 20000), "Cache-Control\x00", "Content-Length\x0b", "Transfer-Encoding\x1f", "Content\xadLength", "Transfer‐Encoding", "HTTP/1.1 200 OK", "GET / HTTP/1.1\r\nHost"}
	oddValues = []string{"", " ", "\t", "a\x00b", "\x00", "a\x01b", "a\x1fb", "a\x7fb", "\x80\xff", "é", "a\rb", "a\r", "\ra", "a\r\rb", "a\nb", "a\nX-B: c", "a\x0bb", "a\x0cb", "\"", "\"a", "a,b,,", "a\tb", strings.Repeat("v", 20000), strings.Repeat("w ", 30000), "\u2028", "a\x08", "\x1b[31m"}
	important = []string{"Cache-Control%s private, max-age=600", "Cache-Control%s no-store", "Set-Cookie%s session=%d", "Vary%s Cookie", "Content-Encoding%s gzip", "Content-Security-Policy%s default-src 'none'", "Content-Length%s 3", "Transfer-Encoding%s chunked", "Location%s /x", "Connection%s close", "Expires%s 0"}
	oddColons = []string{" :", "\t:", "  :", " \t:", "\x0b:", "\x00:", "\r:", "\xa0:", "\r\n :", " ", "", "=", "::"}
)

// oddities are added at the end or with care: their order decides what a seed does.
var oddities = []oddity{
	{"version", 4, func(rng *rand.Rand, a *answer) { a.version = any1(rng, oddVersions...) + " " }},
	{"status", 5, func(rng *rand.Rand, a *answer) { a.status = any1(rng, oddStatuses...) }},
	{"reason", 3, func(rng *rand.Rand, a *answer) { a.reason = any1(rng, oddReasons...) }},
	{"separator", 1, func(rng *rand.Rand, a *answer) {
		a.version = strings.TrimRight(a.version, " ") + any1(rng, "", "  ", "\t", "\x0b", "\r", "\n", "\u00a0", " \t")
	}},
	{"no line", 1, func(rng *rand.Rand, a *answer) {
		a.version, a.status, a.reason = any1(rng, "", "200", "OK", "Status: ", "X: "), any1(rng, "", " 200"), ""
	}},
	{"name", 6, func(rng *rand.Rand, a *answer) { a.insert(rng, any1(rng, oddNames...)+": x") }},
	{"value", 5, func(rng *rand.Rand, a *answer) {
		a.insert(rng, any1(rng, "X-A", "Content-Type", "ETag", "Cache-Control", "Last-Modified", "Server")+any1(rng, ": ", ":", ":\t")+any1(rng, oddValues...))
	}},
	{"colon", 6, func(rng *rand.Rand, a *answer) {
		line := strings.ReplaceAll(any1(rng, important...), "%d", fmt.Sprint(a.n))
		a.insert(rng, strings.Replace(line, "%s", any1(rng, oddColons...), 1))
	}},
	{"fold", 4, func(rng *rand.Rand, a *answer) {
		line := any1(rng, "X-A: b", "Content-Security-Policy: default-src 'self';", "Cache-Control: public,", "Content-Type: multipart/mixed;", "X-A:", "Transfer-Encoding:", "Content-Length:")
		a.insert(rng, line+any1(rng, "\r\n", "\n", "\r\n\r", "\r\n \r\n")+any1(rng, " ", "\t", "   ")+any1(rng, "c", "private", "boundary=x", "no-store", "chunked", "3", "X-B: d", ""))
	}},
	{"field", 3, func(rng *rand.Rand, a *answer) { // each of them may stand
		a.insert(rng, any1(rng, "X-A: b", "Vary: X-Vary", "Content-Type: text/html; charset=utf-8", "ETag: \"a\"", "ETag: W/\"a\"", "Last-Modified: Mon, 01 Jan 2018 00:00:00 GMT", "Link: </x>; rel=preload", "X-Powered-By:", "Server: a/1 (b)",
			"Age: 5", "Date: Mon, 01 Jan 2018 00:00:00 GMT", "Content-Language: de", "X-Content-Type-Options: nosniff", "Keep-Alive: timeout=5, max=100", "Via: 1.0 x", "Warning: 110 - \"x\"", "X-A:b", "X-A:  b\t"))
	}},
	{"again", 4, func(rng *rand.Rand, a *answer) {
		line := any1(rng, "Cache-Control: private", "Cache-Control: max-age=600", "Content-Type: text/html", "ETag: \"b\"", "Date: x", "Vary: *", "Expires: 0", "Age: 1", "Age: -1", "Last-Modified: x", "Connection: close", "Set-Cookie: a=b")
		a.insert(rng, line)
		a.insert(rng, line)
	}},
	{"connection", 3, func(rng *rand.Rand, a *answer) {
		a.insert(rng, "Connection: "+any1(rng, "Cache-Control", "keep-alive, cache-control", "Vary", "X-Hop", "close, X-Hop", "Set-Cookie", "Content-Type", "Content-Length", "Transfer-Encoding", "upgrade", "", ",", "close, close", "X-Hop\x00", "Expires", "Connection"))
		a.insert(rng, "X-Hop: 1")
	}},
	{"length", 6, func(rng *rand.Rand, a *answer) {
		n := len(a.body)
		one := func() string {
			return any1(rng, fmt.Sprint(n+1), fmt.Sprint(max(0, n-3)), fmt.Sprint("+", n), fmt.Sprint("-", n), fmt.Sprintf("0x%x", n), fmt.Sprint("0", n), fmt.Sprint("0000000000000000000000", n), fmt.Sprint(n, " ", n), fmt.Sprint(n, ",", n), fmt.Sprint(n, ", ", n), fmt.Sprint(n, ",", n+1), fmt.Sprint(n, ","),
				fmt.Sprint(",", n), "", " ", fmt.Sprint(n, ".0"), fmt.Sprint(n, "\x00"), fmt.Sprint(n, "\t"), fmt.Sprint("\"", n, "\""), "1e1", "18446744073709551616", "9223372036854775807", "9223372036854775808", fmt.Sprint(uint64(1<<32)+uint64(n)), "-1", "5_0", "٣", fmt.Sprint(n, ";x"), fmt.Sprint(n, "\r"), "0")
		}
		a.framed = []string{"Content-Length: " + one()}
	}},
	{"lengths", 3, func(rng *rand.Rand, a *answer) {
		n := len(a.body)
		a.framed = []string{fmt.Sprintf("Content-Length: %d", n), "Content-Length: " + any1(rng, fmt.Sprint(n), fmt.Sprint(n), fmt.Sprint("0", n), fmt.Sprint(n+5), fmt.Sprint(max(0, n-5)), "", "x", "0", fmt.Sprint(n, " "))}
		if rng.IntN(2) == 0 {
			slices.Reverse(a.framed)
		}
	}},
	{"coding", 6, func(rng *rand.Rand, a *answer) {
		a.framing = "chunks"
		a.framed = []string{any1(rng, "Transfer-Encoding", "transfer-encoding", "TRANSFER-ENCODING") + ":" + any1(rng, " ", "", "\t") + any1(rng, "chunked", "Chunked", "CHUNKED", "chunked ", "chunked\t", "\"chunked\"", "xchunked", "chunkedx", "chunked, identity", "identity, chunked",
			"gzip, chunked", "chunked, gzip", "chunked, chunked", ",chunked", "chunked,", "chunked;q=1", "chunked;a=b", "identity", "gzip", "", " ", "chunked\x00", "\x00chunked", "chun\x0bked", "\x0bchunked", "chunked\r", "chu nked", "chunkéd", "ｃhunked")}
	}},
	{"codings", 2, func(rng *rand.Rand, a *answer) {
		a.framing, a.framed = "chunks", []string{"Transfer-Encoding: chunked", "Transfer-Encoding: " + any1(rng, "chunked", "identity", "gzip", "", "x")}
		if rng.IntN(2) == 0 {
			slices.Reverse(a.framed)
		}
	}},
	{"both", 5, func(rng *rand.Rand, a *answer) {
		n := len(a.body)
		a.framing = any1(rng, "chunks", "chunks", "length")
		a.framed = []string{"Transfer-Encoding: " + any1(rng, "chunked", "chunked", "identity", "xchunked", ""), fmt.Sprintf("Content-Length: %d", []int{n, n + 1, max(0, n-3), 0, 5}[rng.IntN(5)])}
		if rng.IntN(2) == 0 {
			slices.Reverse(a.framed)
		}
	}},
	{"old chunks", 3, func(rng *rand.Rand, a *answer) {
		a.version, a.framing = "HTTP/1.0 ", "chunks"
		if rng.IntN(2) == 0 {
			a.insert(rng, "Connection: keep-alive")
		}
	}},
	{"chunk", 10, func(rng *rand.Rand, a *answer) {
		a.framing = "chunks"
		var p string
		for range 1 + rng.IntN(4) {
			p = chunks(rng, a.body)
		}
		a.payload = &p
	}},
	{"size", 6, func(rng *rand.Rand, a *answer) {
		a.framing = "chunks"
		x := fmt.Sprintf("%x", len(a.body))
		p := any1(rng, "FFFFFFFFFFFFFFFF", "10000000000000000", "7FFFFFFFFFFFFFFF", "8000000000000000", "100000000"+x, "1000000000000000"+x, strings.Repeat("0", 30)+x, "0x"+x, "-"+x, "+"+x, " "+x, "\t"+x, x+" ", x+"   ", x+"\t", x+"\x00", x+"\r", "\""+x+"\"", x+"g", x+",", x+":", "", ";a=b", "x", x+";", x+"; a=b",
			x+";a=\"b;c\"", x+";a=\"\r\nb\"", x+";a=\nb", x+";a=\rb", x+" ;a=b", x+";"+strings.Repeat("e", 100), x+";"+strings.Repeat("f", 20000), x+";\x00", x+";é", x+"\x0b;a", x+"_1") + any1(rng, "\r\n", "\r\n", "\r\n", "\n", "\r", "\r\r\n", "\n\r", "") +
			a.body + any1(rng, "\r\n", "\r\n", "\r\n", "\n", "\r", "", "x\r\n", "\r\nx", "\r\n\r\n") + any1(rng, "0", "0", "0", "00", "000000000000000000000", "-0", "0x0", "0 ", "0;a=b", "", "x", "\x00") + any1(rng, "\r\n\r\n", "\r\n\r\n", "\r\n\r\n", "\n\n", "\r\n\n", "\r\n", "\n\r\n", "\r\r", "")
		a.payload = &p
	}},
	{"trailer", 5, func(rng *rand.Rand, a *answer) {
		a.framing = "chunks"
		field := any1(rng, "X-T: a", "Content-Length: 5", "Transfer-Encoding: chunked", "Cache-Control: no-store", "Cache-Control: private", "Set-Cookie: a=b", "Vary: *", "Host: evil", "Content-Encoding: gzip", "Content-Type: text/html", "Connection: close", "Trailer: x", "bad", "X T: a", "X-T : a", ": a", " X-T: a", "X-T: a\r\n b", "X-T: \x00", "X-T: a\rb",
			"Content-Range: bytes 0-1/9", "Authorization: x", "ETag: \"evil\"", "Age: 9", "X-T: "+strings.Repeat("t", 20000), "X-For: "+left(a.n), "HTTP/1.1 200 OK")
		p := fmt.Sprintf("%x\r\n%s\r\n0\r\n%s%s", len(a.body), a.body, field, any1(rng, "\r\n\r\n", "\r\n\r\n", "\r\n\r\n", "\n\n", "\r\n", "\r\n\r\n"+second(a.n), "\r\n"+field+"\r\n\r\n"))
		if a.body == "" {
			p = strings.TrimPrefix(p, "0\r\n\r\n")
		}
		if a.payload = &p; rng.IntN(2) == 0 {
			name, _, _ := strings.Cut(field, ":")
			a.insert(rng, "Trailer: "+strings.Trim(name, " "))
		}
	}},
	{"ends", 4, func(rng *rand.Rand, a *answer) { // of lines
		if a.eol = any1(rng, "\n", "\n", "\r", "\r\r\n", " \r\n", "\r\n\r\n", "\x00\r\n"); rng.IntN(2) == 0 {
			return
		}
		at := rng.IntN(len(a.lines))
		a.lines[at], a.eol = strings.TrimRight(a.lines[at], "\n")+any1(rng, "\n", "\r\r\n", "\r \r\n", "\n\r\n", "\r\n\n"), "\r\n"
	}},
	{"surplus", 9, func(rng *rand.Rand, a *answer) {
		a.behind = any1(rng, second(a.n), second(a.n), second(a.n), "\r\n"+second(a.n), left(a.n), "\r\n", "\n", "x", "\x00", "0\r\n\r\n", "HTTP/1.1 ", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\n\r\n", "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", second(a.n)+second(a.n), strings.Repeat("s", 70000))
	}},
	{"late", 5, func(rng *rand.Rand, a *answer) {
		a.late = any1(rng, second(a.n), second(a.n), second(a.n), left(a.n), "\r\n", "x", "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", strings.Repeat("s", 9000))
	}},
	{"early", 7, func(rng *rand.Rand, a *answer) {
		a.cut, a.closes = 1+rng.IntN(len(a.body)+20+rng.IntN(400)), true
	}},
	{"stalls", 1, func(rng *rand.Rand, a *answer) {
		if rng.IntN(8) == 0 {
			a.cut, a.stalls = 1+rng.IntN(len(a.body)+20+rng.IntN(200)), true
		}
	}},
	{"interim", 5, func(rng *rand.Rand, a *answer) {
		for range []int{1, 1, 1, 2, 3, 5, 12, 40}[rng.IntN(8)] {
			a.before += "HTTP/1.1 " + any1(rng, "100 Continue", "100", "102 Processing", "103 Early Hints", "103 Early Hints", "104 Upload", "199 X", "150 ") + "\r\n" + any1(rng, "", "", "Link: </x>; rel=preload\r\n", "X-I: "+mark(a.n)+"\r\n", "Cache-Control: no-cache\r\n", "X I: a\r\n", "Connection: close\r\n", "Content-Length: 0\r\n") + "\r\n"
		}
	}},
	{"odd interim", 2, func(rng *rand.Rand, a *answer) {
		a.before = any1(rng, "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 103 X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", "HTTP/1.1 101 X\r\n\r\n", "HTTP/1.0 100 X\r\n\r\n",
			"HTTP/1.1 100 Continue\r\n", "HTTP/1.1 100 Continue\n\n", "HTTP/1.1 204 X\r\n\r\n", "HTTP/1.1 304 X\r\n\r\n", "\r\n", "\r\n\r\n", "HTTP/1.1 103 X\r\nX-I: "+strings.Repeat("i", 60000)+"\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n", "HTTP/2.0 100 X\r\n\r\n")
	}},
	{"many", 1, func(rng *rand.Rand, a *answer) {
		for i := range []int{50, 150, 300, 1500}[rng.IntN(4)] {
			a.lines = append(a.lines, fmt.Sprintf("X-Many-%d: %s", i, strings.Repeat("m", rng.IntN(30))))
		}
	}},
	{"huge", 1, func(rng *rand.Rand, a *answer) {
		a.lines = append(a.lines, "X-Huge: "+strings.Repeat("h", []int{50000, 130000, 270000, 600000}[rng.IntN(4)]))
	}},
	{"split", 6, func(rng *rand.Rand, a *answer) {
		for range 1 + rng.IntN(4) {
			a.pauses = append(a.pauses, rng.IntN(1+len(a.body)+200))
		}
		if slices.Sort(a.pauses); rng.IntN(20) == 0 { // byte by byte
			a.pauses = nil
			for i := range 250 {
				a.pauses = append(a.pauses, i)
			}
		}
	}},
	{"bytes", 8, func(rng *rand.Rand, a *answer) {
		raw := slices.Clone(a.raw())
		for range 1 + rng.IntN(3) {
			switch at, odd := rng.IntN(min(max(1, len(raw)), 400)), oddBytes[rng.IntN(len(oddBytes))]; {
			case len(raw) == 0:
			case rng.IntN(3) == 0:
				raw[at] = odd
			case rng.IntN(2) == 0:
				raw = slices.Delete(raw, at, at+1)
			default:
				raw = slices.Insert(raw, at, odd)
			}
		}
		a.written = raw
	}},
	{"directives", 4, func(rng *rand.Rand, a *answer) {
		a.insert(rng, "Cache-Control: "+any1(rng, "private; max-age=600", "max-age=600; private", "no-store;", "no-cache; no-store", ": no-store", `max-age="600, no-store`, `x="a, private`, "max-age=600 no-store", "NO-STORE: 1", `private="x-y"`, "no-cache", "max-age=0", "max-age=-1", "max-age=1.5", "max-age=", `max-age="600"`, "max-age=99999999999999999999", "s-maxage=0", ",,,", "=", "public"))
		a.insert(rng, "Last-Modified: Mon, 01 Jan 2018 00:00:00 GMT")
	}},
	{"nothing", 1, func(rng *rand.Rand, a *answer) {
		a.written, a.closes = []byte(any1(rng, "", "\r\n", "\x00", "H")), true
	}},
}

var oddityWeights = func() (sum int) {
	for _, o := range oddities {
		sum += o.weight
	}
	return sum
}()

// newAnswer returns answer n of a seed. A third of them has nothing odd.
func newAnswer(seed uint64, n int) *answer {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	a := &answer{n: n, method: "GET", version: "HTTP/1.1 ", status: "200", reason: " OK", eol: "\r\n", framing: "length"}
	a.lines = []string{"X-For: " + mark(n), "Cache-Control: " + pick(rng, "max-age=600", "private, max-age=600", "no-store", "max-age=600, public", "s-maxage=600")}
	a.body = "for " + mark(n) + strings.Repeat(".", []int{0, 10, 200, 200, 4000, 9000}[rng.IntN(6)])
	if rng.IntN(60) == 0 {
		a.body += strings.Repeat("-", 100000)
	}
	switch rng.IntN(16) {
	case 0, 1, 2, 3, 4:
		a.framing = "chunks"
	case 5:
		a.framing, a.closes = "close", true
	case 6:
		a.method = "HEAD"
		a.payload = new(string)
	case 7:
		a.status, a.reason, a.body, a.framing = any1(rng, "204", "304"), " X", "", "none"
	case 8:
		a.status = any1(rng, "404", "301", "500", "410", "203", "300")
	case 9:
		a.body = ""
	}
	for range []int{0, 1, 1, 1, 2, 3}[rng.IntN(6)] {
		at := rng.IntN(oddityWeights)
		for _, o := range oddities {
			if at -= o.weight; at < 0 {
				if !slices.Contains(a.kinds, o.name) && a.written == nil { // what changes bytes comes last
					o.apply(rng, a)
					a.kinds = append(a.kinds, o.name)
				}
				break
			}
		}
	}
	slices.Sort(a.kinds)
	return a
}

// pieces returns what is written at a time: what is behind the answer comes in one write with its end.
func (a *answer) pieces() (list [][]byte) {
	raw, from := a.raw(), 0
	for _, at := range a.pauses {
		if at > from && at < len(raw)-len(a.behind) {
			list = append(list, raw[from:at])
			from = at
		}
	}
	return append(list, raw[from:])
}

// fillers are what reports leave out.
var fillers = regexp.MustCompile(`\.{20,}|-{20,}|s{20,}|v{20,}|h{20,}`)

func (a *answer) String() string {
	text := fillers.ReplaceAllFunc(a.raw(), func(f []byte) []byte { return fmt.Appendf(nil, "%c…%d…", f[0], len(f)) })
	out := fmt.Sprintf("%.900q", text)
	if len(text) > 900 {
		out += fmt.Sprintf("… (%d bytes)", len(text))
	}
	if a.late != "" {
		out += fmt.Sprintf(" and later %.200q", a.late)
	}
	return fmt.Sprintf("%s %s, closed %v, stalled %v, pauses after %v", a.method, out, a.closes, a.stalls, a.pauses[:min(len(a.pauses), 5)])
}

// An answer follows from its seed and number, each oddity comes up, and each verdict.
func TestNewAnswer(t *testing.T) {
	kinds, verdicts := map[string]int{}, map[verdict]int{}
	for n := range 4000 {
		a, b := newAnswer(1, n), newAnswer(1, n)
		if !bytes.Equal(a.raw(), b.raw()) {
			t.Fatalf("answer %d: %q, then %q", n, a.raw(), b.raw())
		}
		j := judge(a.method, a.raw(), a.stalls)
		verdicts[j.verdict]++
		if len(a.kinds) == 0 && j.verdict != whole {
			t.Errorf("answer %d with nothing odd is %v: %q", n, j, a.raw())
		}
		for _, k := range a.kinds {
			kinds[k]++
		}
	}
	for _, o := range oddities {
		if kinds[o.name] == 0 {
			t.Errorf("no answer of kind %s", o.name)
		}
	}
	if verdicts[whole] < 1200 || verdicts[lax] < 200 || verdicts[broken] < 800 {
		t.Errorf("verdicts of 4000 answers: %v", verdicts)
	}
}
