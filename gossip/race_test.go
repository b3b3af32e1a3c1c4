//go:build race

package gossip

// manyPeers is how many real peers one test process can hold: with the race
// detector a handshake costs ten times as much.
const manyPeers = 12

// filterBits determines the number of shards of a filter. Every peer locks all of them twenty times a
// second, which takes most of a test's time with the race detector.
const filterBits = 1 << 19
