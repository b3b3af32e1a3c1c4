package index

import "testing"

// FuzzUpdates changes an index as the bytes of the input determine, and compares it with the plain
// loop.
func FuzzUpdates(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte("\x01a new life, then deltas, then another geometry"))
	f.Add([]byte("\x02\x00\x10\x20\x30\x01\x11\x21\x31\x02\x12\x22\x32\xff\xfe\xfd"))
	f.Add([]byte("\x05AAAABBBBCCCCDDDDAAAABBBBCCCCDDDDabcdefghijklmnop"))
	names := []string{"sparse", "sizes", "few sizes", "hashes", "dense", "all"}
	f.Fuzz(func(t *testing.T, ops []byte) {
		kind := 0
		if len(ops) > 0 {
			kind, ops = int(ops[0]), ops[1:]
		}
		w := newWorld(t, 1, mixes[names[kind%len(names)]])
		for _, op := range ops[:min(len(ops), 200)] {
			w.rng = random(uint64(op))
			w.step()
			w.check()
		}
		w.flush()
		audit(t, w.index, w.loop)
	})
}
