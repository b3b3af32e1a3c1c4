package simulation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/memnet"
)

// patience is how long a client waits for the end of its answer: longer than any
// deadline of a peer.
const patience = 150 * time.Second

// A result is the result of a request, as its client saw it.
type result struct {
	request
	life       int   // of the peer, when it began
	refusals   int64 // by the peer, when it began
	start, end time.Time
	answered   time.Time // when the header came
	status     int
	header     http.Header
	bytes      int64
	version    version
	complete   bool // the answer ended as its framing says
	gone       bool // the client went away first
	bad        string
	err        error
}

// ask sends a request and returns its result.
func (w *world) ask(r request) (res result) {
	if r.Kind == "window" {
		return w.askByHTTP2(r)
	}
	res = result{request: r, life: w.peers[r.Node].lives(), refusals: w.peers[r.Node].refusals(), start: time.Now()}
	defer func() { res.end = time.Now() }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := w.client(r).Dial(ctx, fmt.Sprintf("%s:80", w.peers[r.Node].ip))
	if err != nil {
		res.err = err
		return res
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if r.Kind == "idle" {
		res.gone = true
		io.WriteString(c, "GET /")
		c.SetReadDeadline(time.Now().Add(5 * time.Second)) // before its header is late
		if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && res.refusals < w.peers[r.Node].refusals() {
			w.sometimes("a connection without a request gives way")
		}
		return res
	}
	if r.Kind == "mutated" { // which may be half a request
		res.gone = true
		c.SetDeadline(time.Now().Add(10 * time.Second))
	}
	method, text := w.text(r)
	if _, res.err = io.WriteString(c, text); res.err != nil {
		return res
	}
	in := bufio.NewReader(c)
	answer, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		res.err = err
		return res
	}
	res.status, res.header, res.answered = answer.StatusCode, answer.Header, time.Now()
	res.version, _ = parseVersion(answer.Header.Get("X-Version"))
	w.read(&res, answer)
	return res
}

// client is the host of a request's client.
func (w *world) client(r request) *memnet.Host { return w.net.Host(fmt.Sprintf("10.8.8.%d", 1+r.N%8)) }

// text returns a request as it is sent, and its method.
func (w *world) text(r request) (method, text string) {
	method, fields, body := "GET", "", ""
	switch r.Kind {
	case "odd":
		return method, w.askOddly(r)
	case "mutated":
		return method, w.mutated(r)
	case "hop":
		return method, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", w.pathOf(r.URL), w.hostOf(r.URL), connectionOfClient)
	case "cookie":
		fields = fmt.Sprintf("Cookie: id=session-%d\r\n", r.N)
	case "authorized":
		fields = fmt.Sprintf("Authorization: Bearer session-%d\r\n", r.N)
	case "head":
		method = "HEAD"
	case "range":
		switch fields = fmt.Sprintf("Range: bytes=%d-\r\n", r.N%1000); r.Sort {
		case 1:
			fields = fmt.Sprintf("Range: bytes=-%d\r\n", r.N%1000)
		case 2:
			v := version{r.URL, w.origin.version(pageOf(r.URL), time.Now()), 2}
			fields += "If-Range: " + v.tag() + "\r\n"
		}
	case "part":
		fields = fmt.Sprintf("Range: bytes=%d-%d\r\n", r.N, r.Last)
	case "no-cache":
		fields = []string{"Cache-Control: no-cache\r\n", "Cache-Control: max-age=0\r\n"}[r.At%2]
	case "only-if-cached":
		fields = "Cache-Control: only-if-cached\r\n"
	case "conditional":
		p := pageOf(r.URL)
		v := version{r.URL, w.origin.version(p, time.Now()), 0}
		fields = fmt.Sprintf("If-None-Match: %s\r\n", v.tag())
	case "post", "post-stop":
		method, body = "POST", strings.Repeat("x", 1000)
		fields = "Content-Length: 1000\r\n"
		if r.Kind == "post-stop" {
			body = "and then nothing"
		}
	}
	if r.Kind != "conditional" && r.Sort > 0 {
		fields += fmt.Sprintf("X-Sort: %s\r\nAccept-Encoding: %s\r\n", strings.Repeat("s", r.Sort), w.accepts(r.Sort))
	}
	return method, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", method, w.pathOf(r.URL), w.hostOf(r.URL), fields, body)
}

// accepts returns what a client accepts that selects a variant.
func (w *world) accepts(sort int) string {
	if w.s.Coding {
		return "gzip, " + strings.Repeat("g", sort)
	}
	return strings.Repeat("g", sort)
}

// pathOf, hostOf and urlOf name a page: in requests, and to an operator.
func (w *world) pathOf(url int) string { return fmt.Sprintf("/o/%d", url) }

func (w *world) hostOf(url int) string {
	if url >= coldURL && url < walkURL {
		return "cold"
	}
	return "site"
}

func (w *world) urlOf(url int) string {
	if w.s.Sites {
		return "http://" + w.hostOf(url) + w.pathOf(url)
	}
	return w.pathOf(url)
}

// churn requests N new URLs, one after another on one connection, and returns the result of the
// first that fails.
func (w *world) churn(r request) (res result) {
	res = result{request: r, life: w.peers[r.Node].lives(), refusals: w.peers[r.Node].refusals(), start: time.Now()}
	defer func() { res.end = time.Now() }()
	c, err := w.client(r).Dial(context.Background(), w.peers[r.Node].ip+":80")
	if err != nil {
		res.err = err
		return res
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for i := range int(r.N) {
		res = result{request: res.request, life: res.life, refusals: res.refusals, start: res.start}
		res.URL = r.URL + i
		c.SetDeadline(time.Now().Add(patience))
		if _, res.err = fmt.Fprintf(c, "GET /o/%d HTTP/1.1\r\nHost: site\r\n\r\n", res.URL); res.err != nil {
			return res
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			res.err = err
			return res
		}
		res.status, res.header = answer.StatusCode, answer.Header
		res.version, _ = parseVersion(answer.Header.Get("X-Version"))
		if w.read(&res, answer); res.bad != "" || !res.complete || res.status != http.StatusOK {
			return res
		}
		if r.Pause > 0 {
			time.Sleep(time.Duration(r.Pause) * time.Millisecond)
		}
	}
	return res
}

// readParts reads an answer of several parts, and compares each with the origin's bytes.
func (w *world) readParts(res *result, body io.Reader, boundary string) {
	w.sometimes("several ranges of an object")
	counted := &countingReader{r: body}
	defer func() { res.bytes = counted.n }()
	for parts := multipart.NewReader(counted, boundary); ; {
		part, err := parts.NextPart()
		if err == io.EOF {
			res.complete = true
			return
		}
		var first, last, size int64
		var got []byte
		if err == nil {
			if _, err := fmt.Sscanf(part.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size); err != nil {
				res.bad = "a part without Content-Range"
			}
			got, err = io.ReadAll(part)
		}
		if err != nil {
			res.err = err
			return
		}
		if int64(len(got)) != last-first+1 || !res.version.is(got, first) {
			res.bad = fmt.Sprintf("a part of %d bytes is not that from %d to %d", len(got), first, last)
		}
	}
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// read reads an answer's body and compares it with the origin's.
func (w *world) read(res *result, answer *http.Response) {
	if kind, params, err := mime.ParseMediaType(answer.Header.Get("Content-Type")); err == nil && kind == "multipart/byteranges" && res.status == http.StatusPartialContent {
		w.readParts(res, answer.Body, params["boundary"])
		return
	}
	var first, last, size int64
	if res.status == http.StatusPartialContent {
		if _, err := fmt.Sscanf(answer.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size); err != nil {
			res.bad = "a 206 without Content-Range"
		}
		if res.Kind == "part" && (first != res.N || last != min(res.Last, size-1)) {
			res.bad = fmt.Sprintf("a 206 with %q", answer.Header.Get("Content-Range"))
		}
	}
	body := (res.status == http.StatusOK || res.status == http.StatusPartialContent) && res.Kind != "post" && res.Kind != "post-stop" && res.Kind != "odd" && res.Kind != "mutated"
	buf := make([]byte, 16<<10)
	if res.Kind == "slow" {
		buf = buf[:4<<10]
	}
	for {
		n, err := answer.Body.Read(buf)
		if body && res.bad == "" && !res.version.is(buf[:n], first+res.bytes) {
			res.bad = fmt.Sprintf("wrong bytes between %d and %d", first+res.bytes, first+res.bytes+int64(n))
		}
		res.bytes += int64(n)
		switch {
		case err == io.EOF:
			res.complete = true
			if body && res.bad == "" && res.Kind != "head" {
				res.bad = w.origin.wholeness(res.version, first+res.bytes, last)
			}
			return
		case err != nil:
			res.err = err
			return
		case res.Kind == "slow":
			time.Sleep(100 * time.Millisecond)
		case res.Kind == "leave" && res.bytes >= res.N:
			w.sometimes("a client leaves in the middle")
			res.gone = true
			return
		case res.Kind == "stop" && res.bytes >= res.N && !res.gone:
			w.sometimes("a client stops reading")
			res.gone = true
			time.Sleep(patience - 10*time.Second)
		}
	}
}

// wholeness returns what is wrong with a body that ends there, if it is the whole, or a part of
// it up to its last byte; 0 = it is no part.
func (o *origin) wholeness(v version, end, last int64) string {
	want := pageOf(v.url).length(v)
	o.mu.Lock()
	short, lied := o.short[v]
	o.mu.Unlock()
	if end == want || lied && end == short || last > 0 && last < want && end == last+1 {
		return ""
	}
	return fmt.Sprintf("%d bytes are taken for the whole of %d", end, want)
}
