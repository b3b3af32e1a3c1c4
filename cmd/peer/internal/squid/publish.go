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

// An Object is an object that the peer would serve to a sibling.
type Object struct {
	Identity   string    // as in package httpcache
	FreshUntil time.Time // when it becomes stale
	Generated  time.Time // the origin of its age; zero = unknown
}

// A Publisher serves the digest of the objects that this peer would serve to Squids. Its Expires is
// in the past, so that Squids fetch it every five minutes, their shortest interval: they would add
// any time in the future to that interval. A Publisher is safe for concurrent use.
type Publisher struct {
	// Objects lists the objects that the peer would serve to siblings.
	Objects func() iter.Seq[Object]
	Logger  *slog.Logger

	served, bytes atomic.Int64

	mu      sync.Mutex
	made    time.Time
	until   time.Time // when to make the next one
	current *format.Digest
}

const (
	// horizon is how long an object must stay fresh to be advertised: until a Squid fetches the next
	// digest.
	horizon = 5 * time.Minute
	// oldest is the age that a Squid accepts with the default refresh_pattern: it sends
	// "max-age=259200, only-if-cached".
	oldest = 259200 * time.Second
	// reuse is how long a digest is served before another is made. A large one is served for twenty
	// times as long as it takes to make.
	reuse = 10 * time.Second
)

// ServeHTTP answers a GET with the digest, always whole: Squids send no conditions, and some
// releases crash on a 304.
func (p *Publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "A digest can only be read.", http.StatusMethodNotAllowed)
		return
	}
	d, made, err := p.digest()
	if err != nil {
		p.Logger.Error("cannot make a digest for Squids", "err", err)
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

// Served returns how many digests were served, and their bytes.
func (p *Publisher) Served() (digests, bytes int64) { return p.served.Load(), p.bytes.Load() }

// digest returns the current digest, or makes a new one.
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
	p.Logger.Debug("made a digest for Squids", "digest", d, "took", took)
	return d, now, nil
}

const (
	leastCapacity = 64
	// Bits per object. Mirroring sets bits twice, in most of a small mask: with these numbers, the
	// false positive rate is below one in 200 at any size.
	smallBits, largeBits = 32, 16
	small                = 32 << 10 // entries
)

// build makes a digest of the objects that a Squid may request during the horizon. It is mirrored for
// Squids with bug 5510.
func (p *Publisher) build(now time.Time) (*format.Digest, error) {
	capacity := 0
	for range p.entries(now) {
		capacity++
	}
	for {
		capacity = max(capacity+capacity/16, leastCapacity) // objects may be added before the second pass
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

// entries yields the keys of the objects to advertise. A response that varies has the key of its URL,
// which a Squid uses that knows no variant of it, and if it varies by a single field also the key of
// the variant.
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

// mark returns the Vary mark of an identity with a single field. It has the normalised value: a Squid
// whose client spells the value differently uses the URL's key, or sends no request.
func mark(field string) string {
	name, value, _ := strings.Cut(field, ":")
	return format.VaryMark([]string{name}, func(string) (string, bool) { return value, value != "" })
}
