// Package coding compresses what origins send uncompressed.
//
// A [Compressor] turns the response of an origin into what an origin that compresses
// would have sent: with Content-Encoding, Vary and a weak entity tag, and without a
// length. So a cache keeps it and selects it as any other variant of its URL, and
// compresses nothing when it has it.
//
// Bodies are compressed as they come. When the origin pauses, clients get everything that it
// sent; otherwise they get the blocks of the coding.
package coding

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Codings returns the supported codings. For texts up to some 100 KiB gzip is no larger than
// zstd here, and all clients take it; BENCHMARKS.md has numbers.
func Codings() []string { return []string{"zstd", "gzip"} }

const (
	shortest   = 256       // bytes of a body below which it is left as it is
	maxMemory  = 64        // MiB of encoders in use
	maxSpare   = 2         // encoders of a coding that wait for their next body
	zstdWindow = 512 << 10 // bytes, of the 8 MiB that RFC 9659 allows
	gzipLevel  = 6
	bufferSize = 32 << 10 // bytes

	pause = 20 * time.Millisecond // in which an origin sends nothing, after which clients get what it sent
)

// types are media types that compress well. So do those that end with +json, +xml or +text, and
// all of text/ except event streams, whose pieces are short.
var types = []string{"application/javascript", "application/json", "application/manifest", "application/wasm", "application/x-javascript",
	"application/x-ndjson", "application/xml", "application/yaml", "font/otf", "font/ttf", "image/svg", "image/vnd.microsoft.icon", "image/x-icon"}

// An encoder compresses into what it was reset to.
type encoder interface {
	io.WriteCloser
	Flush() error
	Reset(io.Writer)
}

// A Compressor compresses responses. The zero value is ready, and safe for concurrent use.
type Compressor struct {
	mu    sync.Mutex
	spare map[string][]encoder // by coding
	used  int                  // MiB of those in use
}

// Response rewrites the response of an origin to r, a GET or HEAD: in a coding, or only with the
// Vary of responses that other clients get in one, if coding is "identity". A response that must
// not be changed, or does not gain by it, stays unchanged for all. Response reports whether
// the response is in a coding then, or a 304 that may be of one.
func (c *Compressor) Response(r *http.Request, resp *http.Response, coding string) bool {
	if resp.StatusCode == http.StatusNotModified {
		confirm(r, resp.Header)
		return true
	}
	if !compressible(resp) {
		return false
	}
	h := resp.Header
	varies(h)
	if coding == "identity" {
		return false
	}
	if r.Method != http.MethodHead {
		e, ok := c.take(coding)
		if !ok {
			return false
		}
		resp.Body = newBody(resp.Body, e, func() { c.put(coding, e) })
	}
	h["Content-Encoding"] = []string{coding}
	if tag := tagOf(h); tag != "" {
		h["Etag"] = []string{tag}
	}
	for _, name := range []string{"Content-Length", "Accept-Ranges"} {
		delete(h, name)
	}
	resp.ContentLength = -1
	return true
}

// compressible reports whether a response may be compressed and is worth it, by its
// header alone: so the answers to a GET and to a HEAD agree.
func compressible(resp *http.Response) bool {
	h := resp.Header
	switch s := resp.StatusCode; {
	case s < 200, s == http.StatusNoContent, s == http.StatusResetContent, s == http.StatusPartialContent, s >= 300 && s < 400:
		return false
	case resp.ContentLength >= 0 && resp.ContentLength < shortest:
		return false
	}
	for _, name := range []string{"Content-Encoding", "Content-Range", "Content-Digest", "Repr-Digest", "Digest", "Content-Md5"} {
		if h[name] != nil {
			return false
		}
	}
	return !rfc9111.NoTransform(h) && compressibleType(h.Get("Content-Type"))
}

func compressibleType(s string) bool {
	s, _, _ = strings.Cut(s, ";")
	s = strings.ToLower(strings.TrimSpace(s))
	main, suffix, _ := strings.Cut(s, "+")
	switch suffix {
	case "json", "xml", "text":
		return true
	}
	return strings.HasPrefix(s, "text/") && s != "text/event-stream" || slices.Contains(types, main)
}

// varies adds Accept-Encoding to the response's Vary.
func varies(h http.Header) {
	fields := rfc9111.VaryFields(h)
	if !slices.Contains(fields, "Accept-Encoding") && !slices.Contains(fields, "*") {
		h["Vary"] = append(slices.Clip(h["Vary"]), "Accept-Encoding")
	}
}

// tagOf is the entity tag of a compressed response: that of the origin, but weak, since
// another peer, or the same one later, may come to other bytes. For the same reason
// there is one in place of a date alone, which could be taken for a strong validator.
func tagOf(h http.Header) string {
	if tag := h.Get("Etag"); tag != "" {
		return weak(tag)
	}
	return tagOfDate(h.Get("Last-Modified"))
}

func weak(tag string) string { return "W/" + strings.TrimPrefix(tag, "W/") }

func tagOfDate(date string) string {
	t, ok := rfc9111.ParseDate(date)
	if !ok {
		return ""
	}
	return `W/"` + strconv.FormatInt(t.Unix(), 16) + `"`
}

// Conditions removes from a request to the origin an entity tag that stands for a date; the
// origin then judges by the date. The header is changed.
func Conditions(h http.Header) {
	if lines := h["If-None-Match"]; len(lines) == 1 && lines[0] == tagOfDate(h.Get("If-Modified-Since")) {
		delete(h, "If-None-Match")
	}
}

// confirm makes a 304 fit the response that was asked about, which may be the compressed one.
// Its type is not known; a weak tag without need costs less than a strong one that is wrong.
func confirm(r *http.Request, h http.Header) {
	if tag := h.Get("Etag"); tag != "" && !slices.Contains(slices.Collect(rfc9111.Members(r.Header["If-None-Match"])), tag) {
		h["Etag"] = []string{weak(tag)}
	}
	if h["Vary"] != nil {
		varies(h)
	}
}

// memory is what an encoder takes for a long body, in MiB.
func memory(coding string) int {
	if coding == "zstd" {
		return 6
	}
	return 1
}

// take returns an encoder for a coding, unless too many are in use: each holds memory
// until the origin has sent its body.
func (c *Compressor) take(coding string) (encoder, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used+memory(coding) > maxMemory {
		return nil, false
	}
	if list := c.spare[coding]; len(list) > 0 {
		c.used += memory(coding)
		c.spare[coding] = list[:len(list)-1]
		return list[len(list)-1], true
	}
	var e encoder
	var err error
	switch coding {
	case "zstd":
		e, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true), zstd.WithZeroFrames(true))
	case "gzip":
		e, err = gzip.NewWriterLevel(io.Discard, gzipLevel)
	default:
		return nil, false
	}
	if err != nil {
		return nil, false
	}
	c.used += memory(coding)
	return e, true
}

func (c *Compressor) put(coding string, e encoder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used -= memory(coding)
	if len(c.spare[coding]) < maxSpare {
		if c.spare == nil {
			c.spare = make(map[string][]encoder)
		}
		e.Reset(io.Discard)
		c.spare[coding] = append(c.spare[coding], e)
	}
}
