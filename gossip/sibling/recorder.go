package sibling

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A recorder passes a response on as it is written, and records it if it may be stored.
type recorder struct {
	http.ResponseWriter
	c          *Cache
	q          *request
	status     int     // 0 = none yet
	o          *Object // as it was sent, without its body; nil = it is not stored
	body       bytes.Buffer
	unstorable func() // called when it is known that the response is not stored
}

func (rec *recorder) WriteHeader(status int) {
	if rec.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		rec.status = status
		st := rfc9111.Status{Cache: rec.c.name, Fwd: rec.q.reason, FwdStatus: status}
		if rec.q.Method == http.MethodGet {
			h := rec.Header().Clone()
			rfc9111.RemoveHopByHop(h)
			delete(h, "Cache-Status")
			o := rec.q.object(status, h, 0, time.Now())
			if rec.c.mayStore(rec.q, o) && !o.response.Control.NoCache && o.response.Lifetime > o.response.InitialAge { // a handler cannot validate it
				rec.o, st.Stored = o, true
			}
		}
		if rec.o == nil {
			rec.unstorable()
		}
		st.Add(rec.Header())
	}
	rec.ResponseWriter.WriteHeader(status)
}

func (rec *recorder) Write(p []byte) (int, error) {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	n, err := rec.ResponseWriter.Write(p)
	switch {
	case rec.o == nil:
	case err != nil || int64(rec.body.Len()+n) > rec.c.maxBytes():
		rec.o, rec.body = nil, bytes.Buffer{}
		rec.unstorable()
	default:
		rec.body.Write(p[:n])
	}
	return n, err
}

// ReadFrom lets the system send a file if it is not stored.
func (rec *recorder) ReadFrom(src io.Reader) (int64, error) {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	if rec.o == nil {
		return io.Copy(rec.ResponseWriter, src)
	}
	return io.Copy(struct{ io.Writer }{rec}, src)
}

// Flush implements [http.Flusher], which some handlers need.
func (rec *recorder) Flush() {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(rec.ResponseWriter).Flush() // if that fails, the data is sent later
}

// Unwrap is for [http.ResponseController].
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

// whole returns the response, if it may be stored and is complete.
func (rec *recorder) whole() *Object {
	if rec.o == nil {
		return nil
	}
	h := rec.o.Header
	if length := h.Get("Content-Length"); length != "" && length != strconv.Itoa(rec.body.Len()) {
		return nil
	}
	if _, told := h["Content-Type"]; !told && h.Get("Content-Encoding") == "" { // as net/http guessed for this client
		h.Set("Content-Type", http.DetectContentType(rec.body.Bytes()))
	}
	rec.o.Body = rec.body.Bytes()
	return rec.o
}
