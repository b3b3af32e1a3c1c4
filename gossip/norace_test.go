//go:build !race

package gossip

const manyPeers = 24
