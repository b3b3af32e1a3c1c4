package sibling

import (
	"io"
	"sync"
	"time"
)

// A pace is how fast a source of bodies was lately: a sibling, or an origin.
type pace struct {
	first   average // seconds to an answer's header
	perByte average // for each byte from then on
}

// paces are those of the sources used lately. It is safe for concurrent use.
type paces struct {
	mu   sync.Mutex
	of   map[string]*pace
	size average // of the bodies, in bytes
}

const (
	leastBody = 16 << 10 // bodies below tell nothing of their source's pace

	// An origin is asked before siblings that are likely to take so many times as
	// long, and so much longer. Siblings are there to spare the origin: they may be
	// slower.
	farSlower   = 16
	leastSlower = 50 * time.Millisecond
)

func (s *paces) get(name string) *pace {
	if p := s.of[name]; p != nil {
		return p
	}
	if s.of == nil {
		s.of = make(map[string]*pace)
	}
	for other := range s.of {
		if len(s.of) < maxRecords {
			break
		}
		delete(s.of, other)
	}
	p := &pace{}
	s.of[name] = p
	return p
}

// began notes that a source took so long to a header.
func (s *paces) began(name string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.get(name).first.add(took)
}

// gave notes that a source took so long for n bytes.
func (s *paces) gave(name string, n int64, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size.observe(float64(n))
	if n >= leastBody {
		s.get(name).perByte.observe(took.Seconds() / float64(n))
	}
}

// known returns what is known of a source.
func (s *paces) known(name string) (p pace, size float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.of[name]; known != nil {
		p = *known
	}
	return p, s.size.value
}

// OriginPace returns what the origin of that host (as in a URL) took lately to an
// answer's header and for each byte after it, in seconds; known is false if it has
// not yet answered with a body long enough to tell.
func (c *Client) OriginPace(host string) (first time.Duration, perByte float64, known bool) {
	p, _ := c.origins.known(host)
	return time.Duration(p.first.value * float64(time.Second)), p.perByte.value, p.perByte.known
}

// afterOrigin reports whether the origin of a host should be asked before a
// sibling that takes so long to a header: both are known, and the origin is far
// faster with a body of the usual length.
func (c *Client) afterOrigin(host, peer string, roundTrip time.Duration, now time.Time) bool {
	origin, size := c.origins.known(host)
	if !origin.first.known || !c.records.of(peer).answeredSince(now.Add(-forget)) {
		return false
	}
	sibling, _ := c.bodies.known(peer)
	here := roundTrip.Seconds() + size*sibling.perByte.value
	there := origin.first.value + size*origin.perByte.value
	return here > farSlower*there && here > there+leastSlower.Seconds()
}

// A timed body notes the pace at which it came, when it is closed.
type timed struct {
	io.ReadCloser
	paces *paces
	name  string
	n     int64
	took  time.Duration
}

func (t *timed) Read(p []byte) (int, error) {
	start := time.Now()
	n, err := t.ReadCloser.Read(p)
	t.took += time.Since(start)
	t.n += int64(n)
	return n, err
}

func (t *timed) Close() error {
	if t.n > 0 {
		t.paces.gave(t.name, t.n, t.took)
		t.n = 0
	}
	return t.ReadCloser.Close()
}
