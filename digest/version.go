package digest

import "fmt"

// A Version identifies the contents of one cache at one moment. Two filters of
// one cache with equal versions are equal; a delta applies to the one version it
// names as its base.
type Version struct {
	Epoch    uint64 // changes with the geometry, the seed, or a new life of the cache
	Sequence uint64 // within the epoch, grows with each frozen change
	State    uint64 // set hash of geometry and positions
}

func (v Version) String() string {
	return fmt.Sprintf("%d.%d@%016x", v.Epoch, v.Sequence, v.State)
}

// emptyState is the state of a filter that holds nothing.
func emptyState(g Geometry) uint64 {
	return mix(g.Bits + mix(uint64(g.Hashes)+doubleHashing<<8+uint64(g.seedTag())<<16+uint64(g.Profile)<<48))
}

// stateOf is what one position adds to the state. Addition modulo 2^64 makes a hash of the set
// that does not depend on the order, and a position can be subtracted again. The state finds
// mistakes, not lies: collisions can be constructed.
func stateOf(position uint64) uint64 { return mix(position + golden) }

// ParseVersion reads what [Version.String] writes.
func ParseVersion(s string) (v Version, err error) {
	if _, err := fmt.Sscanf(s, "%d.%d@%x", &v.Epoch, &v.Sequence, &v.State); err != nil || v.String() != s {
		return Version{}, fmt.Errorf("digest: %.60q is no version: %w", s, ErrCorrupt)
	}
	return v, nil
}
