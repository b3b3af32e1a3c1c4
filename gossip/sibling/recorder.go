package sibling

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A recorder hands a response on as it is written, and notes it if it may be kept.
type recorder struct {
	http.ResponseWriter
	room   int64       // for the body; negative = nothing is kept
	status int         // 0 = none yet
	header http.Header // as it was sent; nil = nothing is kept
	sent   time.Time   // when it was
	body   bytes.Buffer

	forwarded  string // the member of Cache-Status
	unstorable func() // called when it is known that nothing is kept; may be nil
}

func (rec *recorder) WriteHeader(status int) {
	if rec.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		rec.status = status
		rec.sent = time.Now()
		h, member := rec.Header(), rec.forwarded
		if status == http.StatusOK && rec.room >= 0 && isStorable(h, rec.sent) {
			rec.header = h.Clone()
			member += "; stored"
		} else if rec.unstorable != nil {
			rec.unstorable()
		}
		h.Add("Cache-Status", member)
	}
	rec.ResponseWriter.WriteHeader(status)
}

func (rec *recorder) Write(p []byte) (int, error) {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	n, err := rec.ResponseWriter.Write(p)
	if rec.header == nil {
		return n, err
	}
	if err != nil || int64(rec.body.Len()+n) > rec.room {
		rec.header, rec.body = nil, bytes.Buffer{}
		if rec.unstorable != nil {
			rec.unstorable()
		}
		return n, err
	}
	rec.body.Write(p[:n])
	return n, nil
}

// ReadFrom lets files be sent by the system if they are not kept.
func (rec *recorder) ReadFrom(src io.Reader) (int64, error) {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	if rec.header == nil {
		return io.Copy(rec.ResponseWriter, src)
	}
	return io.Copy(struct{ io.Writer }{rec}, src)
}

// Flush implements [http.Flusher], for handlers that look for that.
func (rec *recorder) Flush() {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(rec.ResponseWriter).Flush() // it cannot: then it is sent later
}

// Unwrap is for [http.ResponseController].
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

// object returns the response, if it may be kept and is whole.
func (rec *recorder) object() *Object {
	if rec.header == nil {
		return nil
	}
	if length := rec.header.Get("Content-Length"); length != "" && length != strconv.Itoa(rec.body.Len()) {
		return nil
	}
	return newObject(rec.header, rec.body.Bytes(), rec.sent)
}

// newObject makes an object of a response that arrived at that time. Header and body
// are its own from then on.
func newObject(h http.Header, body []byte, arrived time.Time) *Object {
	o := &Object{Header: h.Clone(), Body: body}
	r := rfc9111.NewResponse(http.StatusOK, h, 0, arrived)
	o.Made = arrived.Add(-r.InitialAge)
	if r.Explicit {
		o.Expires = o.Made.Add(r.Lifetime)
	}
	for _, field := range []string{"Age", "Cache-Status", "Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"} {
		delete(o.Header, field)
	}
	if _, told := h["Content-Type"]; !told {
		o.Header["Content-Type"] = nil
		if h.Get("Content-Encoding") == "" { // as net/http did for the one who was answered first
			o.Header.Set("Content-Type", http.DetectContentType(body))
		}
	}
	return o
}

// isStorable reports whether a response with status 200 may be kept for everybody: if
// it says so, and for how long, and is the same for all.
func isStorable(h http.Header, now time.Time) bool {
	r := rfc9111.NewResponse(http.StatusOK, h, 0, now)
	cc := &r.Control
	if !cc.Public && cc.SMaxAge == rfc9111.Unset || cc.NoCache || cc.NoCacheFields != nil || !r.Storable(nil, false) {
		return false
	}
	for _, field := range []string{"Vary", "Set-Cookie", "Content-Range", "Trailer"} {
		if h[field] != nil {
			return false
		}
	}
	return r.Explicit && !isStale(r)
}
