package cache

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bartventer/httpcache"
	"github.com/bartventer/httpcache/store"
	"github.com/bartventer/httpcache/store/driver"
)

// engine lets the httpcache library decide what a fetch does to the cache: it
// makes the conditional request, freshens a stored response by a 304, and says
// whether a response is to be stored. The library is a private cache, so it is
// told what a shared cache must know in terms that it understands, and keeps
// nothing between two exchanges: each has a store of its own that holds at most
// the one response to be validated, without its body. That also keeps it from
// what it doesn't do well: variants, staleness, concurrency.
type engine struct {
	transport http.RoundTripper
	live      sync.Map // exchange by its key in the library
	last      atomic.Uint64
}

// exchange is one fetch. The library sees the key as the URL of its request.
type exchange struct {
	key    string
	stored *entry
	fetch  func(context.Context, http.Header) (*answer, error)
	accept func(*answer) bool // whether a shared cache may store it

	got   *answer
	saved bool
}

// result is what became of an exchange: the answer, and if it is to be stored,
// the header to store. A confirmed answer has no body; the stored one is good.
type result struct {
	*answer
	header    http.Header // without Age and Content-Length
	store     bool
	confirmed bool
}

// exchange runs fetch, with the conditions that validate stored if there is one.
func (e *engine) exchange(ctx context.Context, stored *entry, accept func(*answer) bool,
	fetch func(context.Context, http.Header) (*answer, error)) (*result, error) {

	x := &exchange{key: "x" + strconv.FormatUint(e.last.Add(1), 36), stored: stored, fetch: fetch, accept: accept}
	e.live.Store(x.key, x)
	defer e.live.Delete(x.key)
	req := (&http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "cache", Opaque: x.key},
		Header: http.Header{},
	}).WithContext(ctx)
	if stored != nil {
		req.Header.Set("Cache-Control", "no-cache") // it was judged already: validate it
	}
	resp, err := e.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	r := &result{answer: x.got, store: x.saved, confirmed: x.got.status == http.StatusNotModified && stored != nil}
	r.header = reveal(resp.Header)
	return r, nil
}

// RoundTrip is the library's upstream.
func (e *engine) RoundTrip(req *http.Request) (*http.Response, error) {
	v, ok := e.live.Load(req.URL.Opaque)
	if !ok {
		return nil, fmt.Errorf("cache: no exchange %q", req.URL.Opaque)
	}
	x := v.(*exchange)
	conditions := http.Header{}
	for _, name := range []string{"If-None-Match", "If-Modified-Since"} {
		if lines := req.Header[name]; lines != nil {
			conditions[name] = lines
		}
	}
	a, err := x.fetch(req.Context(), conditions)
	if err != nil {
		return nil, err
	}
	x.got = a
	h := conceal(a.header)
	if x.accept(a) {
		h.Set("Cache-Control", "public")
	} else {
		h.Set("Cache-Control", "no-store")
	}
	return &http.Response{
		StatusCode: a.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  h,
		Body:    http.NoBody,
		Request: req,
	}, nil
}

// concealed are the fields that mean something to the library which a shared
// cache decides otherwise, and those that it writes itself.
var concealed = []string{"Cache-Control", "Expires", "Vary", "X-Httpcache-Status", "X-From-Cache"}

const veil = "Summarycache-Concealed-"

func conceal(h http.Header) http.Header {
	h = h.Clone()
	for name := range h {
		if strings.HasPrefix(name, veil) {
			delete(h, name)
		}
	}
	for _, name := range concealed {
		if lines, ok := h[name]; ok {
			h[veil+name] = lines
			delete(h, name)
		}
	}
	return h
}

// reveal undoes conceal in place and drops what describes one transfer.
func reveal(h http.Header) http.Header {
	for _, name := range concealed {
		delete(h, name)
		if lines, ok := h[veil+name]; ok {
			h[name] = lines
			delete(h, veil+name)
		}
	}
	delete(h, "Age")
	delete(h, "Content-Length")
	return h
}

// The library reads its store by two keys: a list of variants under the URL, and
// a response under each variant's. Ours has one variant.
const variant = "#0"

// Get implements driver.Conn.
func (e *engine) Get(key string) ([]byte, error) {
	id, isResponse := strings.CutSuffix(key, variant)
	v, ok := e.live.Load(id)
	if !ok {
		return nil, driver.ErrNotExist
	}
	x := v.(*exchange)
	switch {
	case x.stored == nil:
		return nil, driver.ErrNotExist
	case !isResponse:
		return fmt.Appendf(nil, `[{"id":%q,"vary":"","vary_resolved":{}}]`, id+variant), nil
	}
	h := conceal(x.stored.header)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Length", "0")
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\t%s\t%s\nHTTP/1.1 %d \r\n", key,
		x.stored.requested.Format(time.RFC3339Nano), x.stored.received.Format(time.RFC3339Nano), x.stored.status)
	h.Write(&b)
	b.WriteString("\r\n")
	return b.Bytes(), nil
}

// Set implements driver.Conn. What is to be stored comes back with the response;
// that it is to be stored is known by this call.
func (e *engine) Set(key string, _ []byte) error {
	if id, isResponse := strings.CutSuffix(key, variant); isResponse {
		if v, ok := e.live.Load(id); ok {
			v.(*exchange).saved = true
		}
	}
	return nil
}

// Delete implements driver.Conn; the library has nothing to delete.
func (e *engine) Delete(string) error { return driver.ErrNotExist }

// The library opens its store by the name of a registered driver, so engines are
// handed to that driver by number.
const scheme = "summarycache"

var (
	register  = sync.OnceFunc(func() { store.Register(scheme, driver.DriverFunc(openEngine)) })
	unopened  sync.Map // engine by number
	engineSeq atomic.Uint64
)

func openEngine(u *url.URL) (driver.Conn, error) {
	v, ok := unopened.LoadAndDelete(u.Host)
	if !ok {
		return nil, driver.ErrNotExist
	}
	return v.(*engine), nil
}

func newEngine() *engine {
	register()
	e := &engine{}
	number := strconv.FormatUint(engineSeq.Add(1), 10)
	unopened.Store(number, e)
	e.transport = httpcache.NewTransport(scheme+"://"+number, httpcache.WithUpstream(e))
	return e
}
