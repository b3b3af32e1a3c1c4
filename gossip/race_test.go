//go:build race

package gossip

// manyPeers is how many real peers one test process can hold: with the race
// detector a handshake costs ten times as much.
const manyPeers = 12

// filterBits makes shards of a filter that every peer looks through twenty times a
// second, lock by lock, which with the race detector is what a test takes longest for.
const filterBits = 1 << 19
