package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache"
	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// A Server answers the builds of one machine: GET, HEAD and PUT, as Bazel, ccache and sccache ask an HTTP cache. Below
// /cas/ the last element of a path is the SHA-256 of the output; any other path names an action.
type Server struct {
	Cache *httpcache.Member
	Key   Key
	Most  int64  // bytes of an output
	Dir   string // for outputs that are being received
}

const (
	inMemory  = 64 << 10 // bytes of the end of an output that are sent after its sum is checked
	longestID = 1 << 10  // bytes of a path
)

var errAbsent = errors.New("no machine has it")

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.EscapedPath()
	want, content := sum{}, false
	if _, digits, ok := strings.Cut(name, "/cas/"); ok {
		if want, content = parseSum(digits); !content {
			http.Error(w, "below /cas/ is the SHA-256 of the output, 64 hexadecimal digits in lower case",
				http.StatusBadRequest)
			return
		}
	}
	switch {
	case len(name) > longestID || len(name) < 2:
		http.Error(w, "the path names the action, in a kilobyte at most", http.StatusBadRequest)
	case r.Method == http.MethodPut:
		s.put(w, r, name, want, content)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, PUT")
		http.Error(w, "this cache answers GET, HEAD and PUT", http.StatusMethodNotAllowed)
	case content:
		s.send(w, r, entry{sum: want, size: -1})
	default:
		switch e, err := s.entry(r.Context(), name); {
		case err != nil:
			http.NotFound(w, r)
		default:
			w.Header().Set("Last-Modified", e.made.UTC().Format(http.TimeFormat))
			s.send(w, r, e)
		}
	}
}

// outputName and actionName are the names of values in the cache.
func outputName(of sum) string        { return "cas " + of.String() }
func actionName(action string) string { return "ac " + action }

// entry returns the entry of an action from here or from a sibling.
func (s *Server) entry(ctx context.Context, action string) (entry, error) {
	text, err := s.Cache.Get(ctx, actionName(action), func(context.Context) ([]byte, time.Time, error) { return nil, time.Time{}, errAbsent })
	if err != nil {
		return entry{}, err
	}
	e, err := s.Key.open(action, string(text))
	if err != nil {
		s.forget(actionName(action))
	}
	return e, err
}

// forget removes here what a sibling should not have given.
func (s *Server) forget(name string) {
	s.Cache.Purge(httpcache.TargetOf(httpcache.ValueURL(name)))
}

// send sends an output, whose length is -1 if it is not known. One whose bytes are not those of its sum is cut off
// before its end.
func (s *Server) send(w http.ResponseWriter, r *http.Request, e entry) {
	name := outputName(e.sum)
	h := w.Header()
	h.Set("ETag", strconv.Quote(e.sum.String()))
	h.Set("Content-Type", "application/octet-stream")
	if r.Method == http.MethodHead {
		size, found, err := s.Cache.Stat(r.Context(), name)
		if err != nil || !found || e.size >= 0 && size >= 0 && e.size != size {
			http.NotFound(w, r)
			return
		}
		h.Set("Content-Length", strconv.FormatInt(max(size, e.size), 10))
		return
	}
	body, err := s.Cache.Open(r.Context(), name, func(context.Context) (io.ReadCloser, time.Time, error) { return nil, time.Time{}, errAbsent })
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer body.Close()
	if e.size >= 0 {
		h.Set("Content-Length", strconv.FormatInt(e.size, 10))
	}
	sent, err := copyChecked(w, body, e.sum)
	switch {
	case err == nil:
	case sent == 0:
		s.forget(name)
		h.Del("Content-Length")
		http.NotFound(w, r)
	default:
		s.forget(name)
		panic(http.ErrAbortHandler)
	}
}

var errOther = errors.New("these are other bytes than those of the sum")

// copyChecked copies from r to w what has that sum. The last bytes are written when the sum is known to be right.
func copyChecked(w io.Writer, r io.Reader, want sum) (sent int64, err error) {
	hash, held, next := sha256.New(), make([]byte, 0, inMemory), make([]byte, inMemory)
	for err == nil { // until r ends
		var n int
		n, err = io.ReadFull(r, next)
		hash.Write(next[:n])
		if n > 0 {
			if len(held) > 0 {
				if _, err := w.Write(held); err != nil {
					return sent, err
				}
			}
			sent += int64(len(held))
			held = append(held[:0], next[:n]...)
		}
	}
	if err != io.EOF && err != io.ErrUnexpectedEOF {
		return sent, err
	}
	if sum(hash.Sum(nil)) != want {
		return sent, errOther
	}
	_, err = w.Write(held)
	return sent, err
}

// put stores an output, and the entry of the action that has made it, if the path names one.
func (s *Server) put(w http.ResponseWriter, r *http.Request, action string, want sum, content bool) {
	spool, err := os.CreateTemp(s.Dir, "put-*")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
		return
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(spool, hash), http.MaxBytesReader(w, r.Body, s.Most))
	e := entry{sum(hash.Sum(nil)), size, time.Now()}
	switch tooLong := (*http.MaxBytesError)(nil); {
	case errors.As(err, &tooLong):
		http.Error(w, fmt.Sprintf("an output may have %d bytes", s.Most), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case content && e.sum != want:
		http.Error(w, "the body has SHA-256 "+e.sum.String(), http.StatusBadRequest)
		return
	}
	if _, err = spool.Seek(0, io.SeekStart); err == nil {
		err = s.Cache.Put(r.Context(), outputName(e.sum), spool)
	}
	if err == nil && !content {
		err = s.Cache.Put(r.Context(), actionName(action), bytes.NewReader([]byte(s.Key.seal(action, e))))
	}
	switch {
	case errors.Is(err, bodies.ErrTooLarge):
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
	default:
		w.WriteHeader(http.StatusCreated)
	}
}
