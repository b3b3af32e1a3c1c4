package simulation

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// The origin writes HTTP to its connections without package net/http, whose server could not
// misbehave.
type origin struct {
	w         *world
	listeners map[string]net.Listener // by host
	closed    chan struct{}           // at the end of all
	changing  gate                    // held while the origin is down

	mu       sync.Mutex
	writes   map[int][]time.Time   // by URL: when it changed besides by its period
	given    map[version]time.Time // when it was last given away, or confirmed
	short    map[version]int64     // what the origin once said its length was, though it was more
	wrong    map[int][]fault       // by URL: what is to go wrong with its next answers
	spoilt   []trouble             // answers that went wrong
	loads    map[int]int           // by URL of a walk: requests
	stubborn map[int]*fault        // by URL: it knows neither conditions nor ranges, and breaks off each time
	conns    map[net.Conn]bool
}

func newOrigin(w *world) *origin {
	return &origin{w: w, changing: make(gate, 1), closed: make(chan struct{}), writes: map[int][]time.Time{}, given: map[version]time.Time{}, short: map[version]int64{},
		wrong: map[int][]fault{}, stubborn: map[int]*fault{}, loads: map[int]int{}, conns: map[net.Conn]bool{},
		listeners: map[string]net.Listener{}}
}

// listen accepts connections at a host that does not do so yet, or any more.
func (o *origin) listen(ip string) {
	l, err := o.w.net.Host(ip).Listen(ip + ":8080")
	if err != nil {
		panic(err)
	}
	o.mu.Lock()
	o.listeners[ip] = l
	o.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			o.mu.Lock()
			o.conns[c] = true
			o.mu.Unlock()
			go func() {
				o.serve(c)
				c.Close()
				o.mu.Lock()
				delete(o.conns, c)
				o.mu.Unlock()
			}()
		}
	}()
}

// version is the number of a URL's version at a moment.
func (o *origin) version(p *page, at time.Time) int {
	n := 0
	if p.period > 0 {
		n = int(at.Sub(o.w.began) / p.period)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.writes[p.url] {
		if !t.After(at) {
			n++
		}
	}
	return n
}

func (o *origin) change(url int) {
	o.mu.Lock()
	o.writes[url] = append(o.writes[url], time.Now())
	o.mu.Unlock()
}

func (o *origin) spoil(f fault) {
	o.mu.Lock()
	o.wrong[f.URL] = append(o.wrong[f.URL], f)
	o.mu.Unlock()
}

func (o *origin) resist(url int, f *fault) {
	o.mu.Lock()
	o.stubborn[url] = f
	o.mu.Unlock()
}

func (o *origin) serve(c net.Conn) {
	in := bufio.NewReader(c)
	for {
		c.SetReadDeadline(time.Now().Add(2 * time.Minute))
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		c.SetReadDeadline(time.Time{})
		if !o.answer(c, r) {
			return
		}
	}
}

// answer reports whether the connection can be used for another request.
func (o *origin) answer(c net.Conn, r *http.Request) bool {
	if te := r.Header["Te"]; r.Method != http.MethodGet && r.Method != http.MethodHead && len(te) == 1 && te[0] == "trailers" {
		delete(r.Header, "Te") // as gRPC needs it: a peer passes trailers on
	}
	o.w.judgeConnection(r.Header, nil, "a request to the origin")
	var url int
	fmt.Sscanf(r.URL.Path, "/o/%d", &url)
	p := pageOf(url)
	switch state := o.w.originState(); state {
	case "origin-hang":
		o.w.sometimes("the origin answers nothing")
		for o.w.originState() == state {
			time.Sleep(time.Second)
		}
		return false
	case "origin-error":
		o.w.sometimes("the origin answers 503")
		io.Copy(io.Discard, r.Body)
		fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy")
		return true
	}
	if status := o.refuses(r); status != 0 {
		o.w.sometimes("the origin refuses an odd request")
		io.Copy(io.Discard, r.Body)
		_, err := io.WriteString(c, refusal(status, time.Now()))
		return err == nil && r.Method != http.MethodHead
	}
	if r.Method == http.MethodPost {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return false
		}
		o.change(url)
		v := version{url, o.version(p, time.Now()), 0}
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nX-Version: %s\r\nContent-Length: 2\r\n\r\nok", v)
		return err == nil
	}
	o.mu.Lock()
	if url >= walkURL && url < lastURL {
		o.loads[url]++
	}
	var f fault
	var spoilt int
	if list := o.wrong[url]; len(list) > 0 {
		f, o.wrong[url] = list[0], list[1:]
		spoilt = len(o.spoilt)
		o.spoilt = append(o.spoilt, trouble{kind: f.Kind, node: anyone, url: url, from: time.Now(), to: never})
	}
	o.mu.Unlock()
	if f.Kind != "" {
		defer func() {
			o.mu.Lock()
			o.spoilt[spoilt].to = time.Now()
			o.mu.Unlock()
		}()
		o.w.log("origin %s of %d after %d", f.Kind, url, f.N)
	}
	now := time.Now()
	if f.Kind == "late" {
		o.w.sometimes("a late header")
		select {
		case <-time.After(time.Duration(max(f.For, 1)) * time.Millisecond):
		case <-o.closed:
			return false
		}
		if f.N%2 == 0 { // it does not look before it answers
			now = time.Now()
		}
	}
	v := version{url, o.version(p, now), p.sort(r.Header)}
	o.mu.Lock()
	if resists := o.stubborn[url]; resists != nil {
		f = *resists
	}
	if o.given[v].Before(now) { // it may have been given since, while this answer was late
		o.given[v] = now
	}
	o.mu.Unlock()
	return o.give(c, r, p, v, f, now)
}

// give writes an answer that a fault may damage.
func (o *origin) give(c net.Conn, r *http.Request, p *page, v version, f fault, now time.Time) bool {
	header := o.personal(p, r, p.header(v, now))
	if f.Kind != "stubborn" && (p.rule.tag && r.Header.Get("If-None-Match") == v.tag() ||
		!p.rule.tag && p.rule.mod && r.Header.Get("If-Modified-Since") == v.modified().Format(http.TimeFormat)) {
		_, err := fmt.Fprintf(c, "HTTP/1.1 304 Not Modified\r\n%s\r\n", header)
		return err == nil
	}
	status, length, first := "200 OK", p.length(v), int64(0)
	end := length
	if from, to, ok := p.rangeOf(r, v); ok && f.Kind != "stubborn" {
		status, first, end = "206 Partial Content", from, to
		header += fmt.Sprintf("Content-Range: bytes %d-%d/%d\r\n", first, end-1, length)
		o.w.sometimes("the origin answers a range")
	}
	said, chunked := end-first, p.chunked && (first == 0 || end < length)
	if f.Kind == "lie" && !chunked && first == 0 && length > 1 {
		if f.N%2 == 0 {
			said += 50 // and then closes
		} else {
			said = length / 2
			o.mu.Lock()
			o.short[v] = said
			o.mu.Unlock()
		}
		o.w.sometimes("the origin lies about the length")
	}
	if chunked {
		header += "Transfer-Encoding: chunked\r\n"
	} else {
		header += fmt.Sprintf("Content-Length: %d\r\n", said)
	}
	if _, err := fmt.Fprintf(c, "HTTP/1.1 %s\r\n%s\r\n", status, header); err != nil || r.Method == http.MethodHead {
		return err == nil
	}
	piece, pause := 32<<10, time.Duration(0)
	if f.Kind == "slow" {
		piece, pause = int(max((end-first)/40, 100)), 200*time.Millisecond
		o.w.sometimes("a slow body")
	}
	buf := make([]byte, piece)
	for sent := int64(0); sent < end-first; {
		n := min(int64(piece), end-first-sent)
		ends := f.Kind == "stall" || f.Kind == "cut" || f.Kind == "origin-reset" || f.Kind == "stubborn"
		if ends {
			n = min(n, f.N-sent)
		}
		if ends && n <= 0 {
			o.w.sometimes("an answer of the origin ends by " + f.Kind)
			if f.Kind == "stall" {
				c.Read(make([]byte, 1)) // until the peer has enough of it
			}
			if f.Kind == "origin-reset" {
				o.w.net.ResetAfter(originIP, ipOf(c.RemoteAddr()), 0)
				c.Write([]byte("x"))
			}
			return false
		}
		v.fill(buf[:n], first+sent)
		b := buf[:n]
		if chunked {
			b = append(append(fmt.Appendf(nil, "%x\r\n", n), b...), "\r\n"...)
		}
		if _, err := c.Write(b); err != nil {
			return false
		}
		sent += n
		time.Sleep(pause)
	}
	if chunked {
		io.WriteString(c, "0\r\n\r\n")
	}
	return f.Kind != "lie"
}

// rangeOf returns the range that the request may get: its first byte, and the byte after its last.
func (p *page) rangeOf(r *http.Request, v version) (first, end int64, ok bool) {
	if !p.ranges || r.Method != http.MethodGet {
		return 0, 0, false
	}
	end = p.length(v)
	var last int64
	switch n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last); {
	case n == 0 || first >= end:
		return 0, 0, false
	case first < 0: // so many at the end
		first = max(0, end+first)
	case n == 2:
		end = min(end, last+1)
	}
	switch r.Header.Get("If-Range") {
	case "":
		return first, end, true
	case v.tag():
		return first, end, p.rule.tag
	case v.modified().Format(http.TimeFormat):
		return first, end, p.rule.mod
	}
	return 0, 0, false
}

func ipOf(a net.Addr) string {
	host, _, _ := net.SplitHostPort(a.String())
	return host
}
