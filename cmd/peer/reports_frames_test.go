//go:build unix

package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frames are an HTTP/2 connection of a scene to its first peer.
type frames struct {
	*http2.Framer
	net.Conn
	block bytes.Buffer
	enc   *hpack.Encoder
}

func (s *scene) frames() *frames {
	s.Helper()
	c, err := net.Dial("tcp", s.peers[0].listen)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, http2.ClientPreface)
	f := &frames{Framer: http2.NewFramer(c, c), Conn: c}
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.enc = hpack.NewEncoder(&f.block)
	f.WriteSettings()
	f.WriteSettingsAck()
	return f
}

// fields returns the block of a GET of what follows the scene's URL, with further fields such as "host: a".
func (f *frames) fields(s *scene, suffix string, more ...string) []byte {
	f.block.Reset()
	for _, field := range append([]string{":method: GET", ":scheme: http", ":authority: " + s.peers[0].listen, ":path: /" + s.path + suffix}, more...) {
		i := strings.Index(field[1:], ": ") + 1
		f.enc.WriteField(hpack.HeaderField{Name: field[:i], Value: field[i+2:]})
	}
	return f.block.Bytes()
}

func (f *frames) get(s *scene, stream uint32, suffix string, more ...string) error {
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.fields(s, suffix, more...), EndStream: true, EndHeaders: true})
}

// status returns the status of a stream's answer, or the code by which the stream or the connection ended.
func (f *frames) status(stream uint32) string {
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return "closed"
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			if frame.StreamID == stream {
				return frame.PseudoValue("status")
			}
		case *http2.RSTStreamFrame:
			if frame.StreamID == stream {
				return frame.ErrCode.String()
			}
		case *http2.GoAwayFrame:
			return frame.ErrCode.String()
		}
	}
}

// The reports about frames of HTTP/2.
var frameReports = []report{
	{"Origins, TLS, HTTP/2", "nghttp2/nghttp2 2883, h2o/h2o 973", "Host differs from `:authority`, and the origin gets it", func(s *scene) {
		s.answer(func(n int, r *http.Request) string { return "200" + fresh + "||" + r.Host })
		f := s.frames()
		f.get(s, 1, "", "host: evil.test")
		if got := f.status(1); got != "200" && got != "400" && got != "PROTOCOL_ERROR" {
			s.Errorf("status %s", got)
		}
		for _, r := range s.asked() {
			if r.Host == "evil.test" || len(r.Header["Host"]) > 0 {
				s.Errorf("the origin got Host %s and %v", r.Host, r.Header["Host"])
			}
		}
	}, held},
	{"Overload and limits", "CVE-2023-45288, golang/go 65051; CVE-2024-27316, apache/httpd", "CONTINUATION without an end", func(s *scene) {
		f := s.frames()
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields(s, "")})
		sent := 0
		for junk := f.fields(s, "", "x-a: "+strings.Repeat("a", 8000)); sent < 64<<20; sent += len(junk) {
			if f.WriteContinuation(1, false, junk) != nil {
				break
			}
		}
		if sent >= 64<<20 {
			s.Errorf("%d bytes were read", sent)
		}
		s.answers("200||x")
		s.get().is(200, "x")
	}, held},
	{"Overload and limits", "CVE-2023-44487; CVE-2025-8671 (MadeYouReset)", "streams that were reset leave work without a limit", func(s *scene) {
		s.peers[0] = spawn(s.T, "run", "--name", "resets", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0",
			"--origin", s.origin.url, "--store", s.TempDir(), "--memory-limit", "64MiB").started
		end := make(chan bool)
		var waiting atomic.Int32
		s.write(func(n int, r *http.Request, c net.Conn) string {
			if strings.HasSuffix(r.URL.Path, "/after") {
				return "200||x"
			}
			waiting.Add(1)
			defer waiting.Add(-1)
			left := make(chan bool)
			go func() {
				c.Read(make([]byte, 1))
				close(left)
			}()
			select {
			case <-end:
			case <-left:
			}
			return ""
		})
		for _, reset := range []func(f *frames, stream uint32) error{
			func(f *frames, stream uint32) error { return f.WriteRSTStream(stream, http2.ErrCodeCancel) },
			func(f *frames, stream uint32) error {
				return f.WriteRawFrame(http2.FrameWindowUpdate, 0, stream, make([]byte, 4))
			},
			func(f *frames, stream uint32) error { return f.WriteData(stream, true, []byte("x")) },
		} {
			f := s.frames()
			go io.Copy(io.Discard, f.Conn)
			f.get(s, 1, "/first") // of the others none may come so far
			eventually(s.T, time.Minute, "a request at the origin", func() bool { return len(s.asked()) > 0 })
			for i := uint32(1); i < 2000; i++ {
				if f.get(s, 2*i+1, "/"+strings.Repeat("a", int(i%50))+"/"+time.Now().Format("150405.000000000")) != nil || reset(f, 2*i+1) != nil {
					break
				}
			}
		}
		eventually(s.T, time.Minute, "at most 600 requests that wait at the origin", func() bool { return waiting.Load() <= 600 })
		close(end)
		eventually(s.T, time.Minute, "an answer", func() bool { return s.ask(0, "GET", "/after", "").body == "x" })
	}, held},
	{"Overload and limits", "CVE-2019-9512, CVE-2019-9515, CVE-2019-9518", "pings and settings of a client that reads nothing fill memory", func(s *scene) {
		s.answers("200||x")
		for _, flood := range []func(f *frames) error{
			func(f *frames) error { return f.WritePing(false, [8]byte{}) },
			func(f *frames) error { return f.WriteSettings() },
		} {
			f := s.frames()
			f.SetWriteDeadline(time.Now().Add(3 * time.Second))
			n := 0
			for ; n < 3e6 && flood(f) == nil; n++ {
			}
			if n == 3e6 {
				s.Errorf("%d frames were read, and nothing was taken", n)
			}
		}
		s.get().is(200, "x")
	}, held},
}
