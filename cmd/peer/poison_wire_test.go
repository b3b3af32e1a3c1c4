//go:build unix

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/mutation"
)

// A wireRequest is a request as it is sent, byte by byte: nothing checks or corrects it.
type wireRequest struct {
	mutation.Request
	patient bool // an answer must come, however busy the machine is
}

// A wireAnswer is what a client got; Status 0 = none that it could read.
type wireAnswer struct {
	status int
	header http.Header
	body   string
}

// patience is how long a request may take that perhaps nobody is going to answer.
const patience = 3 * time.Second

func (r *wireRequest) limit() time.Duration {
	if r.patient {
		return time.Minute
	}
	return patience
}

// exchange sends the request on a connection of its own.
func (r *wireRequest) exchange(addr string) wireAnswer {
	c, err := net.DialTimeout("tcp", addr, time.Minute)
	if err != nil {
		return wireAnswer{body: err.Error()}
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(r.limit()))
	if r.H2 {
		return r.exchange2(c)
	}
	go c.Write(r.Bytes()) // beside the answer, which may be early
	in := bufio.NewReader(c)
	for {
		answer, err := http.ReadResponse(in, &http.Request{Method: strings.ToUpper(r.Method)})
		if err != nil {
			return wireAnswer{body: err.Error()}
		}
		if answer.StatusCode/100 == 1 && answer.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return wireAnswer{answer.StatusCode, answer.Header, fmt.Sprintf("%d bytes and then %v", len(body), err)}
		}
		return wireAnswer{answer.StatusCode, answer.Header, string(body)}
	}
}

// Types and flags of HTTP/2 frames.
const (
	h2Data, h2Headers, h2Reset, h2Settings, h2GoAway, h2Continuation = 0, 1, 3, 4, 7, 9
	h2EndStream, h2EndHeaders, h2Ack                                 = 1, 4, 1
	h2Window                                                         = 8
	h2FrameMost                                                      = 16384
)

// exchange2 sends the request as HTTP/2 with prior knowledge. Of the answer only the status is read.
func (r *wireRequest) exchange2(c net.Conn) wireAnswer {
	var block []byte
	scheme := r.Scheme
	if scheme == "" {
		scheme = "http"
	}
	fields := [][2]string{{":method", r.Method}, {":scheme", scheme}, {":path", r.Target()}}
	host := false
	for _, f := range r.Fields {
		if name := strings.ToLower(f[0]); name == "host" && !host {
			host = true
			fields = append(fields[:3:3], append([][2]string{{":authority", f[1]}}, fields[3:]...)...)
		} else {
			fields = append(fields, [2]string{name, f[1]})
		}
	}
	for _, f := range fields { // literals that need no table and no Huffman coding
		block = append(block, 0)
		block = hpackString(hpackString(block, f[0]), f[1])
	}
	out := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	out = h2Frame(out, h2Settings, 0, 0, nil)
	flags := byte(0)
	if r.Body == "" {
		flags = h2EndStream
	}
	for kind := byte(h2Headers); ; kind, flags = h2Continuation, 0 {
		piece := block[:min(len(block), h2FrameMost)]
		if block = block[len(piece):]; len(block) == 0 {
			out = h2Frame(out, kind, flags|h2EndHeaders, 1, piece)
			break
		}
		out = h2Frame(out, kind, flags, 1, piece)
	}
	if r.Body != "" {
		out = h2Frame(out, h2Data, h2EndStream, 1, []byte(r.Body))
	}
	go c.Write(out)
	var answer wireAnswer
	for in := bufio.NewReader(c); ; {
		var head [9]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			answer.body = err.Error()
			return answer
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(in, payload); err != nil {
			answer.body = err.Error()
			return answer
		}
		switch kind, flags := head[3], head[4]; kind {
		case h2Settings:
			if flags&h2Ack == 0 {
				c.Write(h2Frame(nil, h2Settings, h2Ack, 0, nil))
			}
		case h2Reset, h2GoAway:
			answer.body = fmt.Sprintf("frame %d %x", kind, payload)
			return answer
		case h2Data:
			if len(payload) > 0 { // as much room again, for the stream and the connection
				more := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
				c.Write(h2Frame(h2Frame(nil, h2Window, 0, 0, more), h2Window, 0, 1, more))
			}
			if flags&h2EndStream != 0 {
				return answer
			}
		case h2Headers:
			status, err := hpackStatus(payload)
			if err == nil {
				answer.status = status
			}
			if flags&h2EndStream != 0 {
				return answer
			}
		}
	}
}

func h2Frame(out []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	out = append(out, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	return append(binary.BigEndian.AppendUint32(out, stream), payload...)
}

func hpackString(out []byte, s string) []byte {
	n := len(s)
	if n < 127 {
		return append(append(out, byte(n)), s...)
	}
	out = append(out, 127)
	for n -= 127; n >= 128; n >>= 7 {
		out = append(out, byte(n&127|128))
	}
	return append(append(out, byte(n)), s...)
}

// hpackStatus reads :status, which is the first field of an answer.
func hpackStatus(block []byte) (status int, err error) {
	known := []int{200, 204, 206, 304, 400, 404, 500} // from index 8
	for len(block) > 0 && block[0]&0xe0 == 0x20 {     // the size of the table
		block = block[1:]
	}
	switch {
	case len(block) > 0 && block[0]&0x80 != 0:
		if i := int(block[0]&0x7f) - 8; i >= 0 && i < len(known) {
			return known[i], nil
		}
	case len(block) > 2 && block[0]&0x0f >= 8 && block[0]&0x0f <= 14 && int(block[1]&0x7f)+2 <= len(block):
		text := slices.Clone(block[2 : 2+int(block[1]&0x7f)])
		if block[1]&0x80 == 0 {
			_, err := fmt.Sscanf(string(text), "%3d", &status)
			return status, err
		}
		bits := uint32(0)
		for _, b := range append(text, 0xff, 0xff, 0xff)[:4] {
			bits = bits<<8 | uint32(b)
		}
		for range 3 { // the Huffman codes of digits: five bits up to 2, six from 3 on
			n, used := bits>>27, 5
			if n > 2 {
				n, used = bits>>26-0b011001+3, 6
			}
			status, bits = status*10+int(n), bits<<used
		}
		return status, nil
	}
	return 0, errors.New("no status")
}

// mayDiffer are the fields of answers that may differ between a cache and an origin, with the reason.
var mayDiffer = map[string]string{
	"Date":              "the origin's clock has moved on",
	"Age":               "of a stored answer only",
	"Via":               "names caches",
	"Cache-Status":      "names caches",
	"Connection":        "of one hop",
	"Keep-Alive":        "of one hop",
	"Transfer-Encoding": "of one hop",
	"Content-Length":    "of one hop's framing; the bodies are compared",
}

// difference says how what clients get, got, differs from what they should get, fields that the cache owns
// left out; "" = not at all.
func (got wireAnswer) difference(want wireAnswer, own []string) (kind, detail string) {
	if got.status != want.status {
		return fmt.Sprintf("status %d", got.status), fmt.Sprintf("status %d, want %d; body %.200q, want %.200q; %v", got.status, want.status, got.body, want.body, got.header)
	}
	if got.body != want.body {
		return "body", fmt.Sprintf("body %.600q, want %.600q; %v", got.body, want.body, got.header)
	}
	names := maps.Clone(got.header)
	maps.Copy(names, want.header)
	for name := range names {
		if g, w := strings.Join(got.header[name], ", "), strings.Join(want.header[name], ", "); g != w && mayDiffer[name] == "" && !slices.Contains(own, name) {
			return "field " + name, fmt.Sprintf("%s %q, want %q; %v", name, g, w, got.header)
		}
	}
	return "", ""
}
