package engine

import "errors"

// mostHere is the length in bytes of a body that is received in its leader's goroutine: the client gets nothing before
// all of it has come.
const mostHere = 8 << 10

// errPanics is what the followers of a fetch get whose goroutine panics.
var errPanics = errors.New("cache: a fetch has panicked")

// leadHere runs a fetch in the goroutine of its leader's request, answers that, and stores what has come. A body that
// is long, or of unknown length, is received in a goroutine of its own, so that the client gets it as it comes. Each
// hand-over from one goroutine to another wakes a thread where there is little to do.
func (c *Cache) leadHere(v *walk) (next step) {
	f := v.f
	if !c.work.Enter() {
		c.fail(f, &result{}, errStopped)
		return await
	}
	defer c.work.Leave()
	f.here = true
	defer c.endHere(f)
	v.r.Context().Done() // from now on somebody wants to know when the client leaves
	c.run(f)
	if next = await(v); next != nil {
		next = next(v)
	}
	return next
}

// runOn goes on with a fetch, by an answer, in a goroutine of its own.
func (c *Cache) runOn(f *fetch, a *answer) {
	f.here = false
	goOn := func() {
		c.take(f, a, nil)
		c.run(f)
	}
	if !c.work.Go(goOn) {
		goOn() // it ends at once
	}
}

// endHere stores what a fetch has received in its leader's goroutine, when the client has it.
func (c *Cache) endHere(f *fetch) {
	switch {
	case !f.here:
		return
	case f.result == nil:
		c.fail(f, &result{}, errPanics)
	case f.state == fetchDelivers:
		c.settle(f, f.result)
	}
	c.forget(f)
	c.deserted(f)
}
