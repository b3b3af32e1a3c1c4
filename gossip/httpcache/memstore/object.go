package memstore

import (
	"bytes"
	"container/list"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// An object is immutable, except what its store's lock guards.
type object struct {
	key    string
	value  any // the decoded description
	labels []string
	body   []byte
	sums   bodies.Sums
	bytes  int64 // that it takes, about
	listed atomic.Bool

	in     *order // guarded by the store's lock, as is the rest
	place  *list.Element
	expiry *time.Timer // of its being listed; nil = none
}

func (o *object) Key() string  { return o.key }
func (o *object) Size() int64  { return int64(len(o.body)) }
func (o *object) Listed() bool { return o.listed.Load() }
func (o *object) Value() any   { return o.value }

func (o *object) stop() {
	if o.expiry != nil {
		o.expiry.Stop()
	}
}

// describe makes an object that is not in the store yet.
func (s *store) describe(key string, body []byte, sums bodies.Sums, m bodies.Meta) (*object, error) {
	if len(m.Data) > maxData {
		return nil, bodies.ErrTooLarge
	}
	data := bytes.Clone(m.Data) // the caller's memory
	o := &object{key: key, body: body, sums: sums, labels: s.hooks.Labels(data), bytes: overhead + int64(len(key)+2*len(data)+cap(body))}
	var err error
	if o.value, err = s.hooks.Decode(key, data); err != nil {
		return nil, fmt.Errorf("%w: %w", bodies.ErrCorrupt, err)
	}
	return o, nil
}

// An order has objects, the one used last first.
type order struct {
	list.List
	bytes int64
}

func (l *order) add(o *object)  { o.place, l.bytes = l.PushFront(o), l.bytes+o.bytes }
func (l *order) drop(o *object) { l.Remove(o.place); l.bytes -= o.bytes }

// A view reads the body of an object.
type view struct {
	of   *object
	last bodies.Memory
}

func (v *view) Source(off, n int64) (io.Reader, error) {
	if off < 0 || n < 0 || off+n > v.of.Size() {
		return nil, errors.New("memstore: no such range")
	}
	v.last.Rest = v.of.body[off : off+n]
	return &v.last, nil
}

func (v *view) Sums() bodies.Sums { return v.of.sums }
func (v *view) Close() error      { return nil }

// A writer is the sink of a body that is arriving. All of it stays in the window of the stream, and
// becomes that of the object.
type writer struct {
	bodies.Stream
	store *store
	key   string
	room  int64 // reserved
}

// Create starts an object; size is the length of the body in bytes, -1 if it isn't known.
func (s *store) Create(key string, size int64) (*bodies.Stream, error) {
	if size > s.max/4 {
		return nil, bodies.ErrTooLarge
	}
	w := &writer{store: s, key: key}
	w.Begin(w, size, nil)
	return &w.Stream, nil
}

func (w *writer) Most() int64 { return w.store.max / 4 }

// Save reserves room for bytes that stay in the window.
func (w *writer) Save(p []byte, _ int64) error {
	s, n := w.store, int64(len(p))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing+n > s.max/2 {
		return bodies.ErrNoMemory
	}
	s.writing += n
	w.room += n
	s.makeRoomLocked()
	return nil
}

// Load is not called, since nothing leaves the window.
func (w *writer) Load([]byte, int64, int64, []uint64) (int, error) { return 0, bodies.ErrGone }

func (w *writer) Put(m bodies.Meta) (bodies.Object, error) {
	s := w.store
	body, _, sums := w.Complete()
	sums.Blocks = slices.Clone(sums.Blocks) // they are the memory of the stream
	if cap(body) > len(body)+len(body)/4 {
		body = slices.Clone(body)
	}
	o, err := s.describe(w.key, body, sums, m)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, bodies.ErrClosed
	case m.Wanted != nil && !m.Wanted():
		return nil, bodies.ErrUnwanted
	}
	w.giveBackLocked()
	s.insertLocked(o, m)
	return o, nil
}

func (w *writer) Drop() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.giveBackLocked()
}

func (w *writer) giveBackLocked() { w.store.writing -= w.room; w.room = 0 }

// Close does nothing: the memory goes with the last reader.
func (w *writer) Close() {}
