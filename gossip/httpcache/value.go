package httpcache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// valueURL is the beginning of the URLs of values. No host has this name (RFC 6761 section 6.4).
const valueURL = "http://value.invalid/?"

// ValueURL returns the canonical URL of the value of that name: "http://value.invalid/?" and the name, escaped as in a
// query. Its identity, under which a node advertises it, is "GET " and that. Names with a common prefix have URLs with
// a common prefix, for [TargetOf].
func ValueURL(name string) string { return valueURL + url.QueryEscape(name) }

var (
	errNoLoad  = errors.New("cache: a value needs the function that loads it")
	errNoValue = errors.New("cache: Put needs a value")
	errItself  = errors.New("cache: the load of a value asks for that value, and would wait for itself: want what it " +
		"is made of, or another name")
)

// Get returns the value of a name, any string, from the store, from a sibling, or from load. It returns load's error
// as it is; any other error is ctx's, or says that the cache is closed. The value is stored until it expires (the zero
// Time = never) or the store needs the room. Times are cut to whole seconds: a value that expires within one is not
// stored. The caller must not change the value.
//
// Get does not return what [Member.Remove] has removed, except to callers that came before.
//
// Concurrent callers share one call of load, here and at siblings. Its context has the values of the first caller's,
// and is canceled when no caller waits any more. load is also called if siblings that should have the value take far
// longer than usual. If it panics, so does Get. If it asks for the same value, under its context, it gets an error at
// once.
func (m *Member) Get(
	ctx context.Context, name string, load func(context.Context) (value []byte, expires time.Time, err error),
) ([]byte, error) {
	if m.made(); load == nil {
		return nil, errNoLoad
	}
	identity := rfc9111.Identity(ValueURL(name), nil, nil)
	if value, ok := m.engine.Body(identity); ok {
		m.outcomes[engine.LocalHit].Add(1)
		return value, nil
	}
	q, err := m.ask(ctx, name, func(ctx context.Context) (io.ReadCloser, int64, time.Time, error) {
		value, expires, err := load(ctx)
		return io.NopCloser(bytes.NewReader(value)), int64(len(value)), expires, err
	})
	if err != nil {
		return nil, err
	}
	var to collected
	if _, err := m.serve(&to, q); err != nil {
		engine.Repanic(err)
		return nil, err
	}
	return to.body, nil
}

// Open is [Member.Get] for values that may not fit into memory. It returns a value as it arrives, also to callers that
// come later; each must close it. If what load returned breaks off, load may be called again for the rest.
func (m *Member) Open(ctx context.Context, name string, load func(context.Context) (value io.ReadCloser, expires time.Time, err error)) (io.ReadCloser, error) {
	if m.made(); load == nil {
		return nil, errNoLoad
	}
	q, err := m.ask(ctx, name, func(ctx context.Context) (io.ReadCloser, int64, time.Time, error) {
		value, expires, err := load(ctx)
		return value, -1, expires, err
	})
	if err != nil {
		return nil, err
	}
	resp, err := m.receive(q)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Stat reports whether a value is in the store or at a sibling, which is asked and confirms it, and returns its length
// in bytes, -1 = unknown. Nothing is transferred or stored. The error is ctx's.
func (m *Member) Stat(ctx context.Context, name string) (size int64, found bool, err error) {
	m.made()
	q, err := m.valueFrom(ctx, name, &source{wanted: true, RoundTripper: roundTripFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody}, nil
	})})
	if err != nil {
		return 0, false, err
	}
	q.Method = http.MethodHead
	to := new(statted)
	if _, err := m.serve(to, q); err != nil {
		engine.Repanic(err)
		return 0, false, err
	}
	if size, err = strconv.ParseInt(to.Header().Get("Content-Length"), 10, 64); err != nil {
		size = -1
	}
	if to.status != http.StatusOK {
		return 0, false, ctx.Err()
	}
	return size, true, nil
}

// A statted answer is its header only.
type statted struct {
	collected
	status int
}

func (s *statted) WriteHeader(status int) { s.status = status }

// ask returns a request for a value. load returns its length, -1 = unknown.
func (m *Member) ask(ctx context.Context, name string, load func(context.Context) (io.ReadCloser, int64, time.Time, error)) (*http.Request, error) {
	from := &source{wanted: true}
	from.RoundTripper = roundTripFunc(func(r *http.Request) (*http.Response, error) {
		defer from.ended.Store(true)
		from.ended.Store(false)
		began := time.Now()
		body, length, expires, err := load(r.Context())
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: http.StatusOK, Header: valueHeader(began, expires), Body: body, ContentLength: length}, nil
	})
	return m.valueFrom(ctx, name, from)
}

// valueFrom returns a request for a value from a source. If the load of this very value makes it, that is an error.
func (m *Member) valueFrom(ctx context.Context, name string, from *source) (*http.Request, error) {
	from.within, from.by, from.name = sourceOf(ctx), m, name
	for s := from.within; s != nil; s = s.within { // ends: each was there before the one in it
		if s.by == m && s.name == name && !s.ended.Load() {
			return nil, errItself
		}
	}
	return valueRequest(context.WithValue(ctx, sourceKey{}, from), name), nil
}

// valueRequest returns a GET of a value, which must not be stale.
func valueRequest(ctx context.Context, name string) *http.Request {
	u := &url.URL{Scheme: "http", Host: "value.invalid", Path: "/", RawQuery: url.QueryEscape(name), ForceQuery: true}
	r := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Cache-Control": {"stale-if-error=0"}}}
	return r.WithContext(ctx)
}

// valueHeader returns the header of a value that was requested at began.
func valueHeader(began, expires time.Time) http.Header {
	lifetime := rfc9111.MaxDelta
	if !expires.IsZero() {
		lifetime = max(0, min(lifetime, expires.Sub(began)))
	}
	return http.Header{"Content-Type": {"application/octet-stream"},
		"Cache-Control": {"s-maxage=" + strconv.FormatInt(int64(lifetime/time.Second), 10)}}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A collected answer is one in memory.
type collected struct {
	header http.Header
	body   []byte
}

func (c *collected) Header() http.Header {
	if c.header == nil {
		c.header = http.Header{}
	}
	return c.header
}

func (c *collected) WriteHeader(int) {
	if n, err := strconv.Atoi(c.header.Get("Content-Length")); err == nil {
		c.body = make([]byte, 0, n)
	}
}

func (c *collected) Write(p []byte) (int, error) {
	c.body = append(c.body, p...)
	return len(p), nil
}

// Set stores a value until it expires; the zero Time = for ever. It removes the old value at all siblings, like
// [Member.Remove], and returns the error of that; siblings find the new value here. After concurrent calls at two
// peers, either value may be found.
func (m *Member) Set(ctx context.Context, name string, value []byte, expires time.Time) error {
	err := m.Remove(ctx, name)
	if stored := m.put(ctx, name, bytes.NewReader(value), int64(len(value)), expires); err == nil {
		err = stored
	}
	return err
}

// Put stores a value that never changes, such as the output of a build under the hash of its inputs. No sibling is
// asked or told, other than by the digest; so what it replaces, here or elsewhere, must be the same. The error is
// value's, or says why it is not stored, such as [bodies.ErrTooLarge].
func (m *Member) Put(ctx context.Context, name string, value io.Reader) error {
	if m.made(); value == nil {
		return errNoValue
	}
	return m.put(ctx, name, value, -1, time.Time{})
}

func (m *Member) put(ctx context.Context, name string, value io.Reader, length int64, expires time.Time) error {
	return m.engine.Keep(valueRequest(ctx, name), valueHeader(time.Now(), expires), value, length)
}

// TargetOf returns the target of an invalidation of a canonical URL. With another Kind it is one of all URLs that begin
// with it, or match it.
func TargetOf(url string) invalidation.Target { return engine.TargetOf(url) }

// Remove removes values here and at all siblings. It returns when that is done, usually within a second. From then on
// neither a sibling nor a load that began before brings back an old value. If ctx ends earlier, the error is a
// [*gossip.UnreachedError] that names the peers that are late; they remove the values as soon as they can.
func (m *Member) Remove(ctx context.Context, names ...string) error {
	targets := make([]invalidation.Target, len(names))
	for i, name := range names {
		targets[i] = TargetOf(ValueURL(name))
	}
	return m.Invalidate(ctx, targets...)
}

// Invalidate is [Member.Remove] for all that targets select: responses by URL, values by name, or either by a prefix
// ([TargetOf]), or responses by a tag.
func (m *Member) Invalidate(ctx context.Context, targets ...invalidation.Target) error {
	return m.made().cluster.Invalidate(ctx, targets...)
}
