package systems

import (
	"fmt"
	"math/rand/v2"

	"github.com/summarycache/summarycache/digest"
	engine "github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/sim/lab"
)

// A content is a cache whose objects change, with all versions of its digest that a
// peer may still publish. Several peers may have the same content. Each publishes its
// versions one after the other, at its own times.
type content struct {
	filter   *digest.CountingFilter
	keys     []digest.Key
	rng      *rand.Rand
	versions []frozen // from number gone on
	gone     int
	copies   int // peers with this content
}

type frozen struct {
	filter *digest.Filter
	delta  *digest.Delta
	taken  int // number of peers that published it
}

func newContent(g digest.Geometry, objects int, rng *rand.Rand) (*content, error) {
	filter, err := digest.NewCountingFilter(g, 1)
	if err != nil {
		return nil, err
	}
	c := &content{filter: filter, keys: lab.RandomKeys(rng, objects), rng: rng}
	for _, k := range c.keys {
		filter.Add(k)
	}
	f, d := filter.AdvanceDelta()
	c.versions = append(c.versions, frozen{filter: f, delta: d})
	return c, nil
}

// version returns version n. The first peer that needs it decides how many objects were
// replaced since the version before.
func (c *content) version(n, replaced int) (*digest.Filter, *digest.Delta) {
	if n == c.gone+len(c.versions) {
		for range replaced {
			i := c.rng.IntN(len(c.keys))
			fresh := digest.Key(c.rng.Uint64())
			c.filter.Add(fresh)
			c.filter.Remove(c.keys[i])
			c.keys[i] = fresh
		}
		f, d := c.filter.AdvanceDelta()
		c.versions = append(c.versions, frozen{filter: f, delta: d})
	}
	v := &c.versions[n-c.gone]
	v.taken++
	f, d := v.filter, v.delta
	for len(c.versions) > 1 && c.versions[0].taken == c.copies {
		c.versions = c.versions[1:]
		c.gone++
	}
	return f, d
}

// bodies encodes and decodes each answer once for all peers with equal contents, so that they
// share the memory of the result. The time that each peer would spend on decoding is counted by
// computed.
type bodies struct {
	known map[bodyKey]body
}

type bodyKey struct {
	content  *content
	have, to digest.Version
	carried  bool
}

type body struct {
	frame  []byte // nil if it came with an advert
	result engine.Result
}

const mostBodies = 1024 // that are kept

// answer returns the result of a fetch whose answer is a, and the frame.
func (b *bodies) answer(c *content, f engine.Fetch, a engine.Answer) (engine.Result, []byte, error) {
	whole := func() body {
		frame := a.AppendTo(nil)
		return body{frame, decode(f, frame)}
	}
	id := a.Key()
	if id == (engine.AnswerKey{}) {
		made := whole()
		return made.result, made.frame, made.result.Err
	}
	made := b.get(bodyKey{c, id.Have, id.Current, false}, whole)
	r := made.result
	if r.Err != nil {
		return r, nil, fmt.Errorf("a correct answer is refused: %w", r.Err)
	}
	r.Head.Origin, r.Head.Version.Incarnation = id.Origin, id.Incarnation
	return r, made.frame, nil
}

// carried returns the result of a change that an advert carried.
func (b *bodies) carried(c *content, f engine.Fetch) engine.Result {
	from := f.Base.Version()
	to := digest.Version{Epoch: from.Epoch, Sequence: from.Sequence + f.Step.Step} // a step does not say the state
	r := b.get(bodyKey{c, from, to, true}, func() body { return body{nil, engine.DecodeChange(f, digest.Limits{})} }).result
	r.Head.Origin, r.Head.Version.Incarnation, r.Bytes = f.Get.Origin, f.Get.Have.Incarnation, len(f.Step.Change)
	return r
}

func (b *bodies) get(key bodyKey, make func() body) body {
	made, ok := b.known[key]
	if !ok {
		if len(b.known) >= mostBodies || b.known == nil {
			b.known = map[bodyKey]body{}
		}
		made = make()
		b.known[key] = made
	}
	return made
}

func decode(f engine.Fetch, frame []byte) engine.Result {
	return engine.DecodeAnswer(f, engine.FrameType(frame[0]), frame[engine.FrameHeader:], digest.Limits{})
}
