package digest

import (
	"math/bits"
	"math/rand/v2"
)

// A keyTable is a hash table of keys. The hash of a key is its product with a secret, from which the
// key can be computed, so only hashes are kept. They lie in ascending order, each in its home slot or
// not far behind it, and without a free slot between its home and itself: so a look-up ends at a
// greater hash. A hash of 0, which is that of key 0, is a flag, since 0 is a free slot.
type keyTable struct {
	slots []uint64
	salt  uint64 // odd
	n     int    // hashes in slots
	zero  bool   // key 0 is there
}

// keyTail is how many slots are behind the last home. The table grows if they do not suffice.
const keyTail = 8

func newSalt() uint64 { return rand.Uint64() | 1 }

// home returns where h is if nothing is in its way. All keys of a table agree in the bits of the hash
// that selected its stripe.
func (t *keyTable) home(h uint64) int {
	hi, _ := bits.Mul64(h<<stripeBits, uint64(len(t.slots)-keyTail))
	return int(hi)
}

// find returns the slot of h, or the slot in which it would be.
func (t *keyTable) find(h uint64) (at int, found bool) {
	for at = t.home(h); at < len(t.slots) && t.slots[at] < h && t.slots[at] != 0; at++ {
	}
	return at, at < len(t.slots) && t.slots[at] == h
}

func (t *keyTable) has(k Key) bool {
	h := uint64(k) * t.salt
	if h == 0 || t.n == 0 {
		return h == 0 && t.zero
	}
	_, found := t.find(h)
	return found
}

// add returns false if k is there already. At 7/8 full the table grows by a quarter.
func (t *keyTable) add(k Key) bool {
	h := uint64(k) * t.salt
	if h == 0 {
		was := t.zero
		t.zero = true
		return !was
	}
	if t.n >= (len(t.slots)-keyTail)*7/8 {
		if t.has(k) {
			return false
		}
		t.grow()
	}
	for {
		at, found := t.find(h)
		if found {
			return false
		}
		if t.put(at, h) {
			t.n++
			return true
		}
		t.grow()
	}
}

// put moves what is in the way by one slot. It returns false if there is no room behind.
func (t *keyTable) put(at int, h uint64) bool {
	free := at
	for free < len(t.slots) && t.slots[free] != 0 {
		free++
	}
	if free == len(t.slots) {
		return false
	}
	copy(t.slots[at+1:free+1], t.slots[at:free])
	t.slots[at] = h
	return true
}

func (t *keyTable) remove(k Key) bool {
	h := uint64(k) * t.salt
	if h == 0 {
		was := t.zero
		t.zero = false
		return was
	}
	if t.n == 0 {
		return false
	}
	at, found := t.find(h)
	if !found {
		return false
	}
	end := at + 1
	for end < len(t.slots) && t.slots[end] != 0 && t.home(t.slots[end]) < end {
		end++
	}
	copy(t.slots[at:], t.slots[at+1:end])
	t.slots[end-1] = 0
	t.n--
	return true
}

// grow makes a larger table. It ends, since each size that it tries has more slots behind any home.
func (t *keyTable) grow() {
	old := t.slots
	for more := max(len(old)-keyTail, 8); ; {
		more += more/4 + 1
		t.slots = make([]uint64, more+keyTail)
		if t.fill(old) {
			return
		}
	}
}

// fill puts ascending hashes behind each other. It returns false if they do not fit.
func (t *keyTable) fill(hashes []uint64) bool {
	next := 0
	for _, h := range hashes {
		if h == 0 {
			continue
		}
		next = max(next, t.home(h))
		if next == len(t.slots) {
			return false
		}
		t.slots[next] = h
		next++
	}
	return true
}

// all yields the keys. The loop must not change the table.
func (t *keyTable) all(yield func(Key) bool) {
	if t.zero && !yield(0) {
		return
	}
	unsalt := inverse(t.salt)
	for _, h := range t.slots {
		if h != 0 && !yield(Key(h*unsalt)) {
			return
		}
	}
}
