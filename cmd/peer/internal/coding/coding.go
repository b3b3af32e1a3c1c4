// Package coding compresses responses that origins send uncompressed.
//
// A [Compressor] turns a response of an origin into one that an origin with compression would have
// sent: with Content-Encoding, Vary and a weak entity tag, and without a length. A cache stores and
// selects it like any other variant of its URL, so that each is compressed only once.
//
// Bodies are compressed while they arrive, in blocks. When the origin pauses, everything received
// so far is sent to clients.
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

// Codings returns the supported codings. Texts up to about 100 KiB are no larger in gzip than in
// zstd, and all clients accept gzip; see BENCHMARKS.md.
func Codings() []string { return []string{"zstd", "gzip"} }

const (
	shortest   = 256       // bytes; shorter bodies are not compressed
	maxMemory  = 64        // MiB for all encoders in use
	maxSpare   = 2         // idle encoders of a coding that are kept for later
	zstdWindow = 512 << 10 // bytes, of the 8 MiB that RFC 9659 allows
	gzipLevel  = 6
	bufferSize = 32 << 10 // bytes

	pause = 20 * time.Millisecond // of the origin, after which the bytes received so far are flushed
)

// types are media types that compress well. Types with the suffix +json, +xml or +text do as well,
// and all of text/ except event streams, which consist of short pieces.
var types = []string{"application/javascript", "application/json", "application/manifest", "application/wasm",
	"application/x-javascript",
	"application/x-ndjson", "application/xml", "application/yaml", "font/otf", "font/ttf", "image/svg",
	"image/vnd.microsoft.icon", "image/x-icon"}

// An encoder compresses into the writer that Reset sets.
type encoder interface {
	io.WriteCloser
	Flush() error
	Reset(io.Writer)
}

// A Compressor compresses responses. The zero value is ready, and safe for concurrent use.
type Compressor struct {
	mu    sync.Mutex
	spare map[string][]encoder // idle, by coding
	used  int                  // MiB of the encoders in use
}

// Response compresses the response of an origin to r, a GET or HEAD. With the coding "identity" it
// only adds the Vary that the compressed variants have. It leaves a response alone that must not be
// changed or does not compress well. It reports whether the response is now compressed, or is a 304
// that may be for a compressed one.
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
	delete(h, "Content-Length")
	delete(h, "Accept-Ranges")
	resp.ContentLength = -1
	return true
}

// compressible reports whether a response may be compressed and is worth it. It looks only at the
// header, so that the responses to GET and HEAD agree.
func compressible(resp *http.Response) bool {
	h := resp.Header
	switch s := resp.StatusCode; {
	case s < 200, s == http.StatusNoContent, s == http.StatusResetContent, s == http.StatusPartialContent, s >= 300 && s < 400:
		return false
	case resp.ContentLength >= 0 && resp.ContentLength < shortest:
		return false
	}
	for _, name := range []string{"Content-Encoding", "Content-Range", "Content-Digest", "Repr-Digest", "Digest",
		"Content-Md5"} {
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

// tagOf returns the entity tag of a compressed response. It is the origin's, but weak, since
// compressing again may give other bytes. A response with only a date gets a weak tag made from it,
// since the date alone could be taken for a strong validator.
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

// Conditions removes from the header of a request to the origin an entity tag that was made from a
// date, so that the origin compares the date.
func Conditions(h http.Header) {
	if lines := h["If-None-Match"]; len(lines) == 1 && lines[0] == tagOfDate(h.Get("If-Modified-Since")) {
		delete(h, "If-None-Match")
	}
}

// confirm adapts a 304 to the stored response that is being validated, which may be compressed. Its
// type is not known here; an unnecessary weak tag does less harm than a wrong strong one.
func confirm(r *http.Request, h http.Header) {
	if tag := h.Get("Etag"); tag != "" &&
		!slices.Contains(slices.Collect(rfc9111.Members(r.Header["If-None-Match"])), tag) {
		h["Etag"] = []string{weak(tag)}
	}
	if h["Vary"] != nil {
		varies(h)
	}
}

// memory returns the memory that an encoder needs for a long body, in MiB.
func memory(coding string) int {
	if coding == "zstd" {
		return 6
	}
	return 1
}

// take returns an encoder for a coding, unless too many are in use: each holds its memory until the
// origin has sent the whole body.
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
	e, err := newEncoder(coding)
	if err != nil {
		return nil, false
	}
	c.used += memory(coding)
	return e, true
}

func newEncoder(coding string) (encoder, error) {
	if coding == "zstd" {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true), zstd.WithZeroFrames(true))
	}
	return gzip.NewWriterLevel(io.Discard, gzipLevel)
}

// put takes back an encoder.
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
