//go:build race

package gossip

// manyPeers is how many real peers one test process can hold: with the race
// detector a handshake costs ten times as much.
const manyPeers = 12
