//go:build unix

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// An answerRow is an answer that somebody has met, and what must come of it at a peer.
type answerRow struct {
	name   string
	text   string // | = CRLF, @ = 14 bytes that say for whom they are, {} = an answer that nobody has asked for
	want   string // passes; 502; cut = 502, or as far as it came; either
	stored string // yes, no, or either
	why    string // sections of RFC 9110 and RFC 9112
	late   string // what comes once the client has its answer
	method string // "" = GET
}

const (
	okay  = "HTTP/1.1 200 OK|Cache-Control: max-age=600|"
	sized = okay + "Content-Length: 14|"
	coded = okay + "Transfer-Encoding: chunked|"
)

// spelledFields are those whose meaning is lost with a blank before the colon.
var spelledFields = []string{"Cache-Control : private", "Set-Cookie : session=alice", "Vary : Cookie", "Content-Encoding : gzip", "Content-Security-Policy : default-src 'none'", "Location : /x", "Cache-Control\t: no-store"}

// answerRows returns all rows. Their numbers are those of requests.
var answerRows = func() (rows []answerRow) {
	add := func(why, want, stored string, of ...string) {
		for i := 0; i < len(of); i += 2 {
			rows = append(rows, answerRow{name: of[i], text: of[i+1], want: want, stored: stored, why: why})
		}
	}
	add("9112 4", "passes", "yes", "ordinary", sized+"|@", "in chunks", coded+"|e|@|0||", "no reason", "HTTP/1.1 200 |Cache-Control: max-age=600|Content-Length: 14||@",
		"no space behind the status", "HTTP/1.1 200|Cache-Control: max-age=600|Content-Length: 14||@", "blanks behind the reason", "HTTP/1.1 200 OK \t |Cache-Control: max-age=600|Content-Length: 14||@", "a reason in Latin-1", "HTTP/1.1 200 \xd6l|Cache-Control: max-age=600|Content-Length: 14||@")
	add("9112 6.3", "passes", "yes", "until it closes", okay+"|@", "HTTP/1.0 with a length", "HTTP/1.0 200 OK|Cache-Control: max-age=600|Content-Length: 14||@", "HTTP/1.0 until it closes", "HTTP/1.0 200 OK|Cache-Control: max-age=600||@")
	add("9110 2.5", "either", "either", "HTTP/1.2", "HTTP/1.2 200 OK|Cache-Control: max-age=600|Content-Length: 14||@")
	add("9112 2.3", "502", "no", "HTTP/2.0 in the status line", "HTTP/2.0 200 OK|Cache-Control: max-age=600|Content-Length: 14||@", "HTTP/0.9", "<html>@</html>", "ICY", "ICY 200 OK|Cache-Control: max-age=600|Content-Length: 14||@", "http/1.1 in small letters", "http/1.1 200 OK|Cache-Control: max-age=600|Content-Length: 14||@",
		"HTTP/1", "HTTP/1 200 OK|Cache-Control: max-age=600|Content-Length: 14||@", "HTTP/1.10", "HTTP/1.10 200 OK|Cache-Control: max-age=600|Content-Length: 14||@", "a byte order mark", "\xef\xbb\xbf"+sized+"|@")
	for _, status := range []string{"099", "042", "000", "600", "999", "20", "2000", "+200", "0x200", "2e2"} {
		add(map[bool]string{true: "9110 15", false: "9112 4"}[len(status) == 3 && !strings.ContainsAny(status, "+e")], "502", "no", "status "+status, "HTTP/1.1 "+status+" OK|Cache-Control: max-age=600|Content-Length: 14||@")
	}
	add("9112 4", "502", "no", "two spaces before the status", "HTTP/1.1  200 OK|Cache-Control: max-age=600|Content-Length: 14||@", "a tab before the status", "HTTP/1.1\t200 OK|Cache-Control: max-age=600|Content-Length: 14||@", "an empty line before it", "|"+sized+"|@")
	add("9112 4", "either", "either", "NUL in the reason", "HTTP/1.1 200 O\x00K|Cache-Control: max-age=600|Content-Length: 14||@")
	add("9110 15.2", "passes", "yes", "103 before it", "HTTP/1.1 103 Early Hints|Link: </x>; rel=preload||"+sized+"|@", "three interim answers", strings.Repeat("HTTP/1.1 102 Processing||", 3)+sized+"|@")
	add("9110 15.2", "502", "no", "an interim answer with a body", "HTTP/1.1 100 Continue|Content-Length: 5||hello"+sized+"|@", "an interim answer alone", "HTTP/1.1 103 X||")
	add("9110 15.2", "either", "either", "forty interim answers", strings.Repeat("HTTP/1.1 102 Processing||", 40)+sized+"|@")
	add("9110 15.2.2", "502", "no", "101 that nobody asked for", "HTTP/1.1 101 Switching Protocols|Connection: upgrade|Upgrade: x||@", "101 and then an answer", "HTTP/1.1 101 X||"+sized+"|@")
	for _, field := range append(spelledFields, "Transfer-Encoding : chunked", "Content-Length : 14") {
		name, _, _ := strings.Cut(field, ":")
		text := sized
		if strings.Contains(name, "ength") {
			text = okay
		} else if strings.Contains(name, "ncoding :") {
			text = okay
		}
		add("9112 5.1", "502", "no", "a blank before the colon: "+strings.TrimRight(name, " \t")+map[bool]string{true: " (tab)"}[strings.Contains(name, "\t")], text+field+"||@")
	}
	add("9110 5.1", "502", "no", "a blank in a name", sized+"X-XSS Protection: 1||@", "no name", sized+": x||@", "a name with parentheses", sized+"X(A): b||@", "a name with Latin-1", sized+"\xc9: b||@", "a name with NUL", sized+"X\x00: b||@", "a name with a control byte", sized+"X\x01: b||@", "a name with @", sized+"X@A: b||@")
	add("9112 5", "502", "no", "a line without a colon", sized+"Content-Disposition = attachment||@", "a second status line", okay+"HTTP/1.1 200 OK|Content-Length: 14||@", "an error message among the fields", sized+"PHP Warning  Unable to load||@")
	add("9112 2.2", "502", "no", "a blank before the first field", "HTTP/1.1 200 OK| X: a|Cache-Control: max-age=600|Content-Length: 14||@", "CR in a value", sized+"X-A: a\rb||@", "CR CR LF", strings.ReplaceAll(sized, "|", "\r\r\n")+"\r\r\n@", "CR alone", strings.ReplaceAll(sized, "|", "\r")+"\r@",
		"LF alone", strings.ReplaceAll(sized, "|", "\n")+"\n@", "LF behind one field", sized+"X-A: a\nX-B: b||@", "LF in a value", sized+"X-A: a\nb||@", "LF before the body", sized+"\n@")
	add("9112 5.2", "either", "either", "a folded field by LF, as nginx sends it", sized+"Content-Security-Policy: default-src 'self';\n  img-src *||@", "a folded field", sized+"Content-Security-Policy: default-src 'self';|  img-src *||@", "a coding that is folded", okay+"Transfer-Encoding:| chunked||e|@|0||")
	add("9112 5.2", "either", "no", "private in a folded line", "HTTP/1.1 200 OK|Cache-Control: max-age=600,| private|Content-Length: 14||@")
	add("9110 5.5", "502", "no", "NUL in a value", sized+"X-A: a\x00b||@")
	add("9110 5.5", "either", "either", "a control byte in a value", sized+"X-A: a\x01b||@", "DEL in a value", sized+"X-A: a\x7fb||@")
	add("9110 5.5", "passes", "yes", "Latin-1 in a value", sized+"X-A: \xe9\xff||@", "an empty value", sized+"X-A:||@", "blanks around a value", sized+"X-A: \t b \t||@", "a field twice", sized+"X-A: b|X-A: c||@", "4 KiB in a value", sized+"X-A: "+strings.Repeat("v", 4000)+"||@")
	add("9110 7.6.1", "passes", "no", "Connection names Cache-Control", "HTTP/1.1 200 OK|Cache-Control: private, max-age=600|Connection: Cache-Control|Content-Length: 14||@", "Connection names cache-control and more", "HTTP/1.1 200 OK|Expires: Fri, 01 Jan 2100 00:00:00 GMT|Cache-Control: no-store|Connection: keep-alive, cache-control|Content-Length: 14||@")
	add("9110 7.6.1", "passes", "either", "Connection names Vary", sized+"Vary: X-Vary|Connection: Vary||@", "Connection names a field and close", sized+"X-Hop: 1|Connection: close, X-Hop||@", "Connection names Content-Length", sized+"Connection: Content-Length||@")
	for _, control := range []string{"private; max-age=600", "max-age=600; private", "no-store; max-age=600", "no-cache; no-store", "no-store;", ": no-store", "max-age=600, no-store private", `max-age="600, no-store`, `"no-store", max-age=600`} {
		add("9111 5.2", "passes", "no", "Cache-Control: "+control, "HTTP/1.1 200 OK|Last-Modified: Mon, 01 Jan 2018 00:00:00 GMT|Cache-Control: "+control+"|Content-Length: 14||@")
	}
	add("9112 6.3", "502", "no", "two lengths", okay+"Content-Length: 14|Content-Length: 9||@", "two lengths, the longer behind", okay+"Content-Length: 9|Content-Length: 14||@", "a list of lengths", okay+"Content-Length: 14, 15||@", "a length with a sign", okay+"Content-Length: +14||@", "a length below zero", okay+"Content-Length: -1||@",
		"a length in hex", okay+"Content-Length: 0x0e||@", "a length with a point", okay+"Content-Length: 14.0||@", "an empty length", okay+"Content-Length:||@", "two numbers in a length", okay+"Content-Length: 14 14||@", "a word for a length", okay+"Content-Length: many||@", "a length beyond 64 bits", okay+"Content-Length: 18446744073709551630||@",
		"a length with a comma", okay+"Content-Length: 14,||@", "a length with a semicolon", okay+"Content-Length: 14;x||@")
	add("9110 8.6", "either", "either", "a length twice", okay+"Content-Length: 14|Content-Length: 14||@", "a length twice in one line", okay+"Content-Length: 14, 14||@", "a length with a zero in front", okay+"Content-Length: 014||@")
	add("9112 6.3", "502", "no", "chunks and a length", coded+"Content-Length: 14||e|@|0||", "a length and chunks", sized+"Transfer-Encoding: chunked||e|@|0||", "chunks and a length of 0", okay+"Content-Length: 0|Transfer-Encoding: chunked||e|@|0||")
	add("9112 6.1", "502", "no", "chunks by HTTP/1.0", "HTTP/1.0 200 OK|Cache-Control: max-age=600|Transfer-Encoding: chunked||e|@|0||", "chunks by HTTP/1.0 that keeps", "HTTP/1.0 200 OK|Connection: keep-alive|Cache-Control: max-age=600|Transfer-Encoding: chunked||e|@|0||", "chunked, chunked", okay+"Transfer-Encoding: chunked, chunked||e|@|0||",
		"chunked twice", coded+"Transfer-Encoding: chunked||e|@|0||", "gzip, chunked", okay+"Transfer-Encoding: gzip, chunked||e|@|0||", "identity", okay+"Transfer-Encoding: identity||@", "xchunked", okay+"Transfer-Encoding: xchunked||e|@|0||", "chunked, identity", okay+"Transfer-Encoding: chunked, identity||e|@|0||",
		"chunked;q=1", okay+"Transfer-Encoding: chunked;q=1||e|@|0||", "chunked and a control byte", okay+"Transfer-Encoding: \x0bchunked||e|@|0||", "quoted chunked", okay+"Transfer-Encoding: \"chunked\"||e|@|0||")
	add("9112 7", "passes", "yes", "Chunked", okay+"Transfer-Encoding: Chunked||e|@|0||", "a chunk extension", coded+"|e;a=b|@|0||", "a size in capitals and a zero", coded+"|0E|@|00||", "a trailer", coded+"|e|@|0|X-T: a||")
	add("9110 6.5.1", "passes", "yes", "a length in trailers", coded+"|e|@|0|Content-Length: 5||", "private in trailers", coded+"Trailer: Cache-Control||e|@|0|Cache-Control: private||", "a cookie in trailers", coded+"|e|@|0|Set-Cookie: a=b||")
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Trailer"} { // clients refuse an answer that announces it
		add("9110 6.5.1", "passes", "no", name+" is announced as a trailer", strings.Replace(coded, "max-age=600", "no-store", 1)+"Trailer: X-T, "+name+"||e|@|0|X-T: a|"+name+": 5||")
	}
	add("9112 7.1", "either", "either", "blanks behind a size", coded+"|e  |@|0  ||", "a size with thirty zeros", coded+"|"+strings.Repeat("0", 30)+"e|@|0||", "an empty member of a coding", okay+"Transfer-Encoding: ,chunked||e|@|0||")
	add("9112 7.1", "cut", "no", "a size beyond 64 bits", coded+"|1000000000000000e|@|0||", "a size of 16 digits", coded+"|FFFFFFFFFFFFFFFF|@|0||", "a size with 0x", coded+"|0xe|@|0||", "a size below zero", coded+"|-e|@|0||", "a size with a sign", coded+"|+e|@|0||", "a blank before a size", coded+"| e|@|0||", "no size", coded+"||@|0||",
		"LF behind a size", coded+"|e\n@|0||", "LF behind a chunk", coded+"|e|@\n0||", "a chunk that is too long", coded+"|d|@|0||", "no CRLF behind a chunk", coded+"|e|@0||", "LF in an extension", coded+"|e;a=\nb|@|0||", "CR in an extension", coded+"|e;a=\rb|@|0||", "a long extension", coded+"|e;"+strings.Repeat("e", 20000)+"|@|0||",
		"no last chunk", coded+"|e|@|", "no end behind the last chunk", coded+"|e|@|0|", "a last chunk that is none", coded+"|e|@|0x0||", "a trailer without a colon", coded+"|e|@|0|{}", "a trailer with a blank", coded+"|e|@|0|X-T : a||")
	add("9112 8", "cut", "no", "it ends before its length", okay+"Content-Length: 99||@", "a length of 63 bits", okay+"Content-Length: 9223372036854775807||@", "it ends in its header", okay+"X-A", "nothing", "", "it ends behind its status line", "HTTP/1.1 200 OK|")
	late := func(name, text, late, method, stored string) {
		r := answerRow{name: name, text: text, want: "passes", stored: stored, why: "9112 6.3", late: late, method: method}
		rows = append(rows, r)
	}
	for _, when := range []string{"", ", later"} {
		for _, of := range [][4]string{{"an answer behind a length of 0", okay + "Content-Length: 0||", "", "either"}, {"an answer behind a length", sized + "|@", "", "either"}, {"an answer behind chunks", coded + "|e|@|0||", "", "either"}, {"an answer behind 204", "HTTP/1.1 204 X|Cache-Control: max-age=600||", "", "either"},
			{"an answer behind 304", "HTTP/1.1 304 X|Cache-Control: max-age=600||", "", "either"}, {"an answer behind HEAD", sized + "|", "HEAD", "either"}, {"an answer behind chunks of HEAD", coded + "|", "HEAD", "either"}} {
			if when == "" {
				late(of[0], of[1]+"{}", "", of[2], of[3])
			} else {
				late(of[0]+when, of[1], "{}", of[2], of[3])
			}
		}
	}
	late("HEAD with its body", sized+"|@", "", "HEAD", "either")
	late("204 with a body", "HTTP/1.1 204 X|Cache-Control: max-age=600|Content-Length: 14||@", "", "", "either")
	late("204 with chunks", "HTTP/1.1 204 X|Cache-Control: max-age=600|Transfer-Encoding: chunked||e|@|0||", "", "", "either")
	late("304 with a body", "HTTP/1.1 304 X|Cache-Control: max-age=600|Content-Length: 14||@", "", "", "either")
	late("CRLF behind a length", sized+"|@|", "", "", "either")
	late("408 on an idle connection", sized+"|@", "HTTP/1.1 408 Request Timeout|Connection: close|Content-Length: 0||", "", "yes")
	return rows
}()

var surplusAt = regexp.MustCompile(`\{\}`)

// answer returns what the origin sends for a row, as the answer to request n.
func (r answerRow) answer(n int) *answer {
	text := func(s string) string {
		s = surplusAt.ReplaceAllLiteralString(s, strings.ReplaceAll(second(n), "\r\n", "|"))
		return strings.ReplaceAll(strings.ReplaceAll(s, "@", "for "+mark(n)), "|", "\r\n")
	}
	a := &answer{n: n, method: "GET", late: text(r.late), written: []byte(text(r.text)), kinds: []string{r.name}}
	if r.name == "a name with @" {
		a.written = []byte(strings.Replace(string(a.written), "Xfor "+mark(n)+"A", "X@A", 1))
	}
	if r.method != "" {
		a.method = r.method
	}
	j := judge(a.method, a.written, false)
	a.closes = j.open || j.verdict == broken && strings.Contains(j.reason(), " 8: ")
	return a
}

// came says what came of a row, as its want does.
func (e *exchanged) came() (want, stored string) {
	want = map[string]string{"passed": "passes", "refused": fmt.Sprint(e.first.status), "cut": "cut", "none": "none"}[e.first.kind]
	return want, map[bool]string{true: "yes", false: "no"}[e.stored]
}

// TestAnswerRows sends each row, twice and by the sibling, and then a good answer for another URL on
// the connection that is left, if one is.
func TestAnswerRows(t *testing.T) {
	t.Parallel() // it waits most of the time
	rows := answerRows
	answer := func(n int) *answer {
		if n < len(rows) {
			return rows[n].answer(n)
		}
		return answerRow{text: "HTTP/1.1 200 OK|Cache-Control: no-store|Content-Length: 14||@"}.answer(n)
	}
	var numbers []int
	for n := range 2 * len(rows) {
		numbers = append(numbers, n)
	}
	got := answerPeers(t, len(rows), answer).send(numbers)
	for n, r := range rows {
		a := answer(n)
		j := judge(a.method, a.raw(), false)
		if r.want == "passes" && j.verdict == broken || (r.want == "502" || r.want == "cut") && j.verdict == whole || r.want == "either" && j.verdict != lax && j.reason() != "" {
			t.Errorf("%s: the reader of the RFCs says %v, want %s", r.name, j, r.want)
		}
		j.verdict = min(j.verdict, lax)
		e := got[n]
		for i, o := range []outcome{e.first, e.again, e.sibling} {
			where := []string{"at first", "the second time", "at the sibling"}[i]
			what, detail := o.wrong(a, j)
			came := map[string]string{"passed": "passes", "refused": fmt.Sprint(o.status)}[o.kind]
			if came == "" {
				came = o.kind
			}
			if fits := came == r.want || r.want == "cut" && came == "502" || r.want == "either" && (came == "passes" || came == "502"); !fits || what != "" && o.kind != "none" {
				t.Errorf("%s (%s), %s: %s %s %s, want %s\n%v", r.name, r.why, where, came, what, detail, r.want, a)
			}
		}
		if _, stored := e.came(); r.stored != "either" && stored != r.stored {
			t.Errorf("%s (%s): stored %s, want %s\n%v", r.name, r.why, stored, r.stored, a)
		}
		next, v := answer(n+len(rows)), got[n+len(rows)]
		good := judge(next.method, next.raw(), false)
		for _, o := range []outcome{v.first, v.again, v.sibling} {
			if what, detail := o.wrong(next, good); what != "" && what != "another field" {
				t.Errorf("the request behind %s: %s %s\n%v", r.name, what, detail, a)
			}
		}
	}
	t.Logf("%d rows", len(rows))
}
