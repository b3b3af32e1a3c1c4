package systems

import (
	"cmp"
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
	engine "github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/sim/lab"
)

// headerBytes is what IP and UDP add to a datagram.
const headerBytes = 28

// Kinds of peers.
const (
	fullPeer = iota
	lightPeer
)

// asking has the counts of light peers and their questions.
type asking struct {
	lightBytes [2]int64    // in and out, of digests
	packets    [2][2]int64 // datagrams of a kind of peer, in and out
	questions  [2][2]int64 // bytes of questions and replies likewise
	misses     int         // lookups of light peers for what another peer holds
	found      int         // of these, those for which a reply named a holder
	asks       int         // questions
}

func (w *exchange) kind(p *exchangePeer) int {
	if p.light {
		return lightPeer
	}
	return fullPeer
}

// packet counts a datagram, and the bytes in it of a question or a reply.
func (w *exchange) packet(p *exchangePeer, direction, asked int) {
	if w.counting && (p.light || p.observed(w)) {
		w.packets[w.kind(p)][direction]++
		w.questions[w.kind(p)][direction] += int64(asked)
	}
}

// keepers returns how many others keep p's digest.
func (w *exchange) keepers(p *exchangePeer) int {
	switch {
	case w.options.full == 0:
		return w.options.peers - 1
	case p.light:
		return w.options.full
	}
	return w.options.full - 1
}

// miss looks up an object for each that a light peer replaces.
func (w *exchange) miss(p *exchangePeer, more float64) {
	for p.misses += more; p.misses >= 1; p.misses-- {
		c := w.contents[w.rng.IntN(len(w.contents))]
		if c == p.content {
			continue // it has the object itself
		}
		w.lookUp(p, c, engine.Question{Number: w.rng.Uint32(), Keys: []digest.Key{c.keys[w.rng.IntN(len(c.keys))]}}, 0)
	}
}

// A light peer asks one full peer, another if there is no reply in time, and no more.
const (
	fullAsked = 2
	replyWait = 50 * time.Millisecond
)

// lookUp asks a full peer about an object of a cache, after others that did not answer. As in package sibling, each
// light peer asks another one first; here all are as near as each other.
func (w *exchange) lookUp(p *exchangePeer, c *content, q engine.Question, silent int) {
	if silent == fullAsked {
		w.looked(c, engine.Reply{})
		return
	}
	if w.counting {
		w.asks++
	}
	full, done := w.peers[(p.at+silent)%w.options.full], false
	w.message(p, full, q.AppendTo(nil), func(b []byte) {
		w.reply(full, p, b, func(r engine.Reply) {
			if !done && r.Number == q.Number {
				done = true
				w.looked(c, r)
			}
		})
	})
	w.after(replyWait, func() {
		if !done {
			done = true
			w.lookUp(p, c, q, silent+1)
		}
	})
}

// looked counts a lookup.
func (w *exchange) looked(c *content, r engine.Reply) {
	if !w.counting {
		return
	}
	w.misses++
	if slices.ContainsFunc(r.Holders, func(h engine.Holder) bool { return w.byID[h.Peer].content == c }) {
		w.found++
	}
}

// reply answers a question to full.
func (w *exchange) reply(full, to *exchangePeer, b []byte, then func(engine.Reply)) {
	q, err := engine.DecodeQuestion(b)
	w.err = cmp.Or(w.err, err)
	index := w.peers[0].index // which stands for that of each full peer
	r := q.Reply(engine.IDOf(to.name), full.engine.Complete(), func(dst []engine.Named, k digest.Key) []engine.Named {
		for _, m := range index.Lookup(nil, k) {
			dst = append(dst, engine.Named{Peer: engine.IDOf(m.Peer), FalsePositives: m.FalsePositiveRate})
		}
		return dst
	})
	w.message(full, to, r.AppendTo(nil), func(b []byte) {
		r, err := engine.DecodeReply(b)
		w.err = cmp.Or(w.err, err)
		then(r)
	})
}

// message sends a question or a reply.
func (w *exchange) message(from, to *exchangePeer, b []byte, then func(b []byte)) {
	w.packet(from, out, len(b))
	if w.rng.Float64() < w.options.loss {
		return
	}
	w.after(w.oneWay(), func() {
		w.packet(to, in, len(b))
		then(b)
	})
}

func (r *exchangeReport) addAsking(job *lab.Job, title string) {
	number := func(name, head string) lab.Column {
		return lab.Column{Name: name, Head: head, Format: "%.4g", Loose: lab.AnyValue}
	}
	r.asking = job.Table("Full and light peers, bytes a second and peer with 28 bytes of headers a datagram: "+title,
		lab.Column{Name: "peers"}, lab.Column{Name: "full"}, lab.Column{Name: "loss", Head: "loss %"},
		lab.Column{Name: "peer"},
		lab.Column{Name: "direction"}, number("digests", ""), number("questions", ""), number("total", ""),
		number("datagrams", "datagrams/s"),
		number("memory", "memory of digests, MB"), number("found", "found %"), number("asked", "questions a miss"))
	r.asking.Note("Each peer publishes to the full ones, which run the engine and the index of the product. A light " +
		"peer looks up an object for each that it replaces: it asks a full one, and another if there is no reply " +
		"within 50 ms. Every peer has the contents of many others (--contents), so replies name more holders than " +
		"they would in most clusters. Full peers do not die here, and streams are counted without headers.")
}

// asked adds the rows of one cluster.
func (r *exchangeReport) asked(w *exchange) {
	o := w.options
	seconds := o.time.Seconds()
	for kind, name := range []string{"full", "light"} {
		n := float64(o.full)
		var found, asked any
		if kind == lightPeer {
			n = float64(o.peers - o.full)
			found, asked = lab.Round(100*float64(w.found)/float64(max(1, w.misses)), 6), lab.Round(float64(w.asks)/float64(max(1, w.misses)), 4)
		}
		held := 0
		p := w.peers[kind*o.full] // the first of its kind
		if p.index != nil {
			held += p.index.MemoryBytes()
		}
		for _, q := range w.known(p) {
			if r, _ := p.engine.Replica(q.name); r.Filter != nil {
				held += r.Filter.MemoryBytes()
			}
		}
		for d, direction := range []string{"in", "out"} {
			digests := float64(w.lightBytes[d])
			if kind == fullPeer {
				digests = 0
				for k := range kinds {
					digests += float64(w.bytes[d][k])
				}
			}
			datagrams, questions := float64(w.packets[kind][d]), float64(w.questions[kind][d])
			total := digests + questions + headerBytes*datagrams
			r.asking.Row(o.peers, o.full, 100*o.loss, name, direction, lab.Round(digests/seconds/n, 6), lab.Round(questions/seconds/n, 6),
				lab.Round(total/seconds/n, 6), lab.Round(datagrams/seconds/n, 4), lab.Round(float64(held)/1e6, 4), found, asked)
		}
	}
}
