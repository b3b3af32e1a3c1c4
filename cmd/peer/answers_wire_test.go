//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// linger is how long an origin keeps a connection whose answer may have left the other side waiting.
const linger = 50 * time.Millisecond

// A lane is an origin whose clients, all together, send one request at a time: what another request gets
// of an answer can only be what somebody kept. Its host is the site at the caches under test.
type lane struct {
	host, addr string
	answer     func(n int) *answer

	mu       sync.Mutex
	idle     *sync.Cond
	busy     int  // requests whose answers are not sent whole
	released bool // the client has its answer: what is late may come
	seen     map[int]int
}

func newLane(t *testing.T, host string, answer func(n int) *answer) *lane {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &lane{host: host, addr: l.Addr().String(), answer: answer, seen: make(map[int]int)}
	o.idle = sync.NewCond(&o.mu)
	var conns sync.Map
	t.Cleanup(func() {
		l.Close()
		conns.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Store(c, nil)
			go func() {
				defer conns.Delete(c)
				defer c.Close()
				o.serve(c)
			}()
		}
	}()
	return o
}

// serve answers requests until one is left whose answer may not have an end, or ends with it.
func (o *lane) serve(c net.Conn) {
	in := bufio.NewReader(c)
	var head []byte
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if head = append(head, line...); !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
			continue
		}
		target := bytes.Fields(head)[1]
		n, err := strconv.Atoi(string(target[bytes.LastIndexByte(target, '/')+1:]))
		head = head[:0]
		if err != nil { // a program that asks whether the origin lives
			io.WriteString(c, "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n")
			continue
		}
		a := o.answer(n)
		o.work(n, 1)
		ok := o.send(c, a)
		o.work(n, -1)
		if !ok {
			return
		}
		if j := judge(a.method, a.raw(), a.stalls); j.verdict != whole || j.open || a.late != "" {
			c.SetReadDeadline(time.Now().Add(linger))
		} else {
			c.SetReadDeadline(time.Time{})
		}
	}
}

// send reports whether the connection may go on.
func (o *lane) send(c net.Conn, a *answer) bool {
	for i, piece := range a.pieces() {
		if i > 0 {
			time.Sleep(300 * time.Microsecond)
		}
		if _, err := c.Write(piece); err != nil {
			return false
		}
	}
	if a.stalls {
		o.work(a.n, -1) // nobody waits for it
		c.SetReadDeadline(time.Now().Add(time.Minute))
		io.Copy(io.Discard, c)
		o.work(a.n, 1)
		return false
	}
	if a.late != "" && o.wait() {
		c.Write([]byte(a.late))
	}
	return !a.closes
}

func (o *lane) work(n, by int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy += by; by > 0 {
		o.seen[n]++
	}
	o.idle.Broadcast()
}

// wait waits until the client has its answer. It may wait itself, for this connection to end.
func (o *lane) wait() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	late := false
	defer time.AfterFunc(linger, func() {
		o.mu.Lock()
		late = true
		o.mu.Unlock()
		o.idle.Broadcast()
	}).Stop()
	for !o.released && !late {
		o.idle.Wait()
	}
	return o.released
}

// settle lets come what is late, and waits for it. It returns how often the origin saw request n.
func (o *lane) settle(n int) (seen int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.released = true
	o.idle.Broadcast()
	for o.busy > 0 { // linger at most
		o.idle.Wait()
	}
	o.released = false
	return o.seen[n]
}

// An outcome is what a client got for a request.
type outcome struct {
	kind   string // passed, refused, cut, or none
	status int
	header http.Header
	body   string
	err    error
	took   time.Duration
}

// An asker sends plain requests, one after another, on one connection as long as that is kept.
type asker struct {
	addr, host string
	limit      time.Duration
	c          net.Conn
	in         *bufio.Reader
}

// answerLimit is within which a client of a peer must have an answer or a closed connection. Of nginx, which
// waits for ever behind some interim answers, nobody waits that long.
const answerLimit, rivalLimit = time.Minute, 3 * time.Second

func (k *asker) ask(method string, n int) (got outcome) {
	began := time.Now()
	defer func() {
		got.took = time.Since(began)
		if got.kind == "none" || got.kind == "cut" {
			k.close()
		}
	}()
	if k.c == nil {
		c, err := net.DialTimeout("tcp", k.addr, k.limit)
		if err != nil {
			return outcome{kind: "none", err: err}
		}
		k.c, k.in = c, bufio.NewReader(c)
	}
	k.c.SetDeadline(began.Add(k.limit))
	fmt.Fprintf(k.c, "%s /%d HTTP/1.1\r\nHost: %s\r\n\r\n", method, n, k.host)
	for {
		answer, err := http.ReadResponse(k.in, &http.Request{Method: method})
		if err != nil {
			return outcome{kind: "none", err: err}
		}
		if answer.StatusCode/100 == 1 {
			continue
		}
		got = outcome{kind: "passed", status: answer.StatusCode, header: answer.Header}
		body, err := io.ReadAll(answer.Body)
		got.body = string(body)
		if err != nil {
			got.kind, got.err = "cut", err
		} else if got.status >= 500 && got.header.Get("X-For") == "" && !anyMark.MatchString(got.body) {
			got.kind = "refused"
		}
		if answer.Close {
			k.close()
		}
		return got
	}
}

func (k *asker) close() {
	if k.c != nil {
		k.c.Close()
		k.c = nil
	}
}

// anyMark finds for whom bytes are, and whether they were left behind an answer.
var anyMark = regexp.MustCompile(`[\[{]\d{8}[\]}]`)

// wrong says what is wrong with what a client got for an answer; "" = nothing. The kind is a few words.
func (got outcome) wrong(a *answer, j judged) (kind, detail string) {
	text := got.body
	for _, values := range got.header {
		for _, v := range values {
			text += "\n" + v
		}
	}
	for _, m := range anyMark.FindAllString(text, -1) {
		if m != mark(a.n) && m != left(a.n) && !bytes.Contains(a.raw(), []byte(m)) { // a byte of it may be odd
			return "foreign bytes", "those of " + m
		}
		if m == left(a.n) && !strings.Contains(j.body, m) && !j.may("X-For", m) {
			return "bytes behind an answer", m
		}
	}
	var timeout net.Error
	switch {
	case got.kind == "none" && errors.As(got.err, &timeout) && timeout.Timeout():
		return "no answer", got.err.Error()
	case got.kind == "none":
		return "no answer", got.err.Error() // a peer says 502
	case j.verdict == broken:
		if got.kind == "passed" {
			return "a broken answer passes", ""
		}
		return "", ""
	case got.kind == "refused" || got.kind == "cut":
		if j.verdict == whole {
			return "a good answer is " + got.kind, fmt.Sprint(got.status, got.err)
		}
		return "", ""
	case got.status != j.status:
		return "another status", fmt.Sprint(got.status)
	case a.method != "HEAD" && got.body != j.body:
		return "another body", fmt.Sprintf("%.300q", got.body)
	case j.verdict == whole:
		return got.differs(j)
	}
	return "", ""
}

// may reports whether the answer has that value in a field.
func (j *judged) may(name, value string) bool {
	for _, f := range j.fields {
		if f[0] == name && f[1] == value {
			return true
		}
	}
	return false
}

// added are fields that a cache adds to an answer.
var added = map[string]bool{"Via": true, "Age": true, "Cache-Status": true, "Date": true, "Content-Length": true,
	"Connection": true, "Keep-Alive": true, "Warning": true}

// differs says which field is not as the origin sent it.
func (got outcome) differs(j judged) (kind, detail string) {
	want := j.passing()
	if j.status == http.StatusNotModified { // RFC 9110, section 15.4.5: no metadata but what updates
		want.Del("Content-Type")
	}
	for name := range want {
		if g, w := fmt.Sprint(got.header[name]), fmt.Sprint(want[name]); g != w && !added[name] {
			return "another field", fmt.Sprintf("%s: %.200q, want %.200q", name, g, w)
		}
	}
	for name, g := range got.header {
		if want[name] == nil && !added[name] {
			return "another field", fmt.Sprintf("%s: %.200q, want none", name, g)
		}
	}
	return "", ""
}
