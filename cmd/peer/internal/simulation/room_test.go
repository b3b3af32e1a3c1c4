package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// changingRoom adds disks whose room shrinks below what the store holds, and grows again.
func (s *schedule) changingRoom(rng *rand.Rand) {
	for range 1 + rng.IntN(3) {
		s.Faults = append(s.Faults, fault{Kind: "disk-room", At: rng.IntN(s.Seconds * 1000), For: 2000 + rng.IntN(s.Seconds*500), Node: rng.IntN(s.Peers), To: theOrigin,
			N: 2 + rng.Int64N(5)})
	}
}

// changeRoom changes the room of a peer's disk N times: others fill it and delete their files.
func (p *peer) changeRoom(f fault) {
	rng := rand.New(rand.NewPCG(p.w.s.Seed, uint64(f.At)))
	for range f.N {
		p.setRoom([]int64{4 << 10, 64 << 10, 512 << 10, 1 << 20, 4 << 20, 64 << 20}[rng.IntN(6)])
		p.w.wait(f.For / int(f.N))
	}
	p.setRoom(0)
}

func (p *peer) setRoom(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.room = n
	p.disk.Limit(n)
}

// small returns the stores that have not grown again with their disks. Where a disk refused what it seemed to
// have room for, the store stays smaller for some minutes.
func (w *world) small() (wrong []string) {
	for _, p := range w.peers {
		refused := slices.ContainsFunc(w.s.Faults, func(f fault) bool {
			return f.Node == p.index && slices.Contains([]string{"disk-full", "disk-any", "disk-write"}, f.Kind)
		})
		if n := p.now(); n != nil && !refused {
			if s := n.Status().Store; s.RoomBytes < s.MaxBytes {
				wrong = append(wrong, fmt.Sprintf("p%d: the store uses %d bytes at most of %d at rest", p.index, s.RoomBytes, s.MaxBytes))
			}
		}
	}
	return wrong
}
