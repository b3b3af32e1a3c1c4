package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// askByHTTP2 sends a GET by HTTP/2. The client has no window for the body when it asks, and opens one
// some seconds after the header: first for a byte, then for more.
func (w *world) askByHTTP2(r request) (res result) {
	res = result{request: r, life: w.peers[r.Node].lives(), refusals: w.peers[r.Node].refusals(), start: time.Now()}
	defer func() { res.end = time.Now() }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := w.client(r).Dial(ctx, w.peers[r.Node].ip+":80")
	if err != nil {
		res.err = err
		return res
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	b := &lateBody{w: w, framer: http2.NewFramer(c, c), late: time.Duration(1+r.N%8) * time.Second}
	b.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if res.err = b.send(c, w.fieldsOf(r)); res.err != nil {
		return res
	}
	for b.header == nil {
		if res.err = b.next(); res.err != nil {
			return res
		}
	}
	res.status, res.header, res.answered = b.status, b.header, time.Now()
	res.version, _ = parseVersion(b.header.Get("X-Version"))
	w.read(&res, &http.Response{StatusCode: b.status, Header: b.header, Body: io.NopCloser(b)})
	return res
}

// fieldsOf returns the fields of a request by HTTP/2.
func (w *world) fieldsOf(r request) []string {
	fields := []string{":method", "GET", ":scheme", "http", ":authority", w.hostOf(r.URL), ":path", w.pathOf(r.URL)}
	if r.Sort > 0 {
		fields = append(fields, "x-sort", strings.Repeat("s", r.Sort), "accept-encoding", w.accepts(r.Sort))
	}
	return fields
}

// A lateBody is the body of an answer by HTTP/2 whose reader opens the window late.
type lateBody struct {
	w      *world
	framer *http2.Framer
	late   time.Duration
	opened bool

	status int
	header http.Header // nil = it has not come
	data   []byte
	ended  bool
}

// send sends the request.
func (b *lateBody) send(c io.Writer, fields []string) error {
	var block strings.Builder
	e := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_, err := io.WriteString(c, http2.ClientPreface)
	return errors.Join(err, b.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}),
		b.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(block.String()), EndStream: true, EndHeaders: true}))
}

// next reads a frame.
func (b *lateBody) next() error {
	f, err := b.framer.ReadFrame()
	if err != nil {
		return err
	}
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return b.framer.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return b.framer.WritePing(true, f.Data)
		}
	case *http2.MetaHeadersFrame:
		b.ended = f.StreamEnded()
		if b.status, err = strconv.Atoi(f.PseudoValue("status")); err != nil || b.status < 200 {
			return err
		}
		b.header = http.Header{}
		for _, field := range f.RegularFields() {
			b.header.Add(field.Name, field.Value)
		}
	case *http2.DataFrame:
		b.data, b.ended = f.Data(), f.StreamEnded()
	case *http2.RSTStreamFrame:
		return fmt.Errorf("the stream was reset: %v", f.ErrCode)
	}
	return nil
}

// open lets the peer send n more bytes.
func (b *lateBody) open(n int) error {
	return errors.Join(b.framer.WriteWindowUpdate(0, uint32(n)), b.framer.WriteWindowUpdate(1, uint32(n)))
}

func (b *lateBody) Read(p []byte) (int, error) {
	if !b.opened && !b.ended {
		b.opened = true
		pause(b.late)
		err := b.open(1)
		pause(200 * time.Millisecond)
		if err := errors.Join(err, b.open(70_000)); err != nil {
			return 0, err
		}
		b.w.sometimes("a client opens its window late")
	}
	for len(b.data) == 0 {
		if b.ended {
			return 0, io.EOF
		}
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	if !b.ended {
		return n, b.open(n)
	}
	return n, nil
}
