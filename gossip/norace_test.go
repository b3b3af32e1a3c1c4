//go:build !race

package gossip

const manyPeers = 50

const filterBits = 1 << 26
