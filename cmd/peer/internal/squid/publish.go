package squid

import (
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	format "github.com/summarycache/summarycache/digest/squid"
)

// An Object is one that the peer would serve to a sibling.
type Object struct {
	Identity   string    // as package cache has it
	FreshUntil time.Time // when it becomes stale
	Generated  time.Time // its age counts from then; zero = unknown
}

// A Publisher serves the digest of what this peer would answer Squids. Squids
// fetch it every five minutes, since it is said to have expired: that is the least
// interval that they have, and at every other they would add it to the time we
// name. It is safe for concurrent use.
type Publisher struct {
	// Objects lists what the peer would serve to siblings.
	Objects func() iter.Seq[Object]
	Logger  *slog.Logger // nil = discard

	served, bytes atomic.Int64

	mu      sync.Mutex
	made    time.Time
	until   time.Time
	current *format.Digest
}

const (
	// horizon is how long an object must remain of use to a Squid to be listed:
	// until it fetches the next digest.
	horizon = 5 * time.Minute
	// oldest is the age that a Squid accepts, at the default of its
	// refresh_pattern: it asks for "max-age=259200, only-if-cached".
	oldest = 259200 * time.Second
	// reuse is for how long a digest that was asked for is given out. A large one is given
	// out for twenty times as long as it takes to make.
	reuse = 10 * time.Second
)

// ServeHTTP answers a GET with the digest, always whole: Squids ask without
// conditions, and some releases do not survive a 304.
func (p *Publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "A digest can only be read.", http.StatusMethodNotAllowed)
		return
	}
	d, made, err := p.digest()
	if err != nil {
		p.log().Error("cannot make a digest for Squids", "err", err)
		http.Error(w, "This cache has no digest.", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", format.ContentType)
	h.Set("Content-Length", strconv.Itoa(d.Size()))
	h.Set("Last-Modified", made.UTC().Format(http.TimeFormat))
	h.Set("Expires", made.UTC().Format(http.TimeFormat))
	if r.Method == http.MethodHead {
		return
	}
	n, _ := d.WriteTo(w)
	p.served.Add(1)
	p.bytes.Add(n)
}

// Served returns how many digests were given out, and their bytes.
func (p *Publisher) Served() (digests, bytes int64) { return p.served.Load(), p.bytes.Load() }

// digest returns the digest at hand, or makes a new one.
func (p *Publisher) digest() (*format.Digest, time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.current != nil && now.Before(p.until) {
		return p.current, p.made, nil
	}
	d, err := p.build(now)
	if err != nil {
		return nil, now, err
	}
	took := time.Since(now)
	p.current, p.made, p.until = d, now, now.Add(took+max(reuse, 20*took))
	p.log().Debug("made a digest for Squids", "digest", d, "took", took)
	return d, now, nil
}

func (p *Publisher) log() *slog.Logger {
	if p.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return p.Logger
}

const (
	leastCapacity = 64
	// The mask is filled twice where it is mirrored, which is most of a small one:
	// with these, less than one in 200 absent objects is listed, whatever the size.
	smallBits, largeBits = 32, 16
	small                = 32 << 10 // entries
)

// build makes a digest of what a Squid may ask for during the horizon. It is
// mirrored for the sake of receivers with bug 5510.
func (p *Publisher) build(now time.Time) (*format.Digest, error) {
	capacity := 0
	for range p.entries(now) {
		capacity++
	}
	for {
		capacity = max(capacity+capacity/16, leastCapacity) // some may come while we look again
		bits := largeBits
		if capacity <= small {
			bits = smallBits
		}
		b, err := format.NewBuilder(capacity, bits)
		if err != nil {
			return nil, err
		}
		for k := range p.entries(now) {
			b.Add(k)
		}
		b.Mirror()
		d, err := b.Digest()
		if !errors.Is(err, format.ErrFull) {
			return d, err
		}
		capacity *= 2
	}
}

// entries are the keys of what is to be listed. A response that varies has that of
// its URL, by which a Squid that knows no variant of it asks, and if it varies by
// one field that of the variant.
func (p *Publisher) entries(now time.Time) iter.Seq[format.Key] {
	return func(yield func(format.Key) bool) {
		for o := range p.Objects() {
			if o.FreshUntil.Sub(now) < horizon || now.Sub(o.Generated) > oldest-horizon {
				continue
			}
			id, isGet := strings.CutPrefix(o.Identity, "GET ")
			url, fields, varies := strings.Cut(id, "\n")
			if !isGet {
				continue
			}
			if !yield(format.KeyOf(format.Get, url, "")) {
				return
			}
			if varies && strings.IndexByte(fields, '\n') < 0 && !yield(format.KeyOf(format.Get, url, mark(fields))) {
				return
			}
		}
	}
}

// mark is the Vary mark of an identity's one field. The value is the normalised
// one: a Squid whose client writes it otherwise asks by the URL or not at all.
func mark(field string) string {
	name, value, _ := strings.Cut(field, ":")
	return format.VaryMark([]string{name}, func(string) (string, bool) { return value, value != "" })
}
