//go:build !race

package systems

const raceEnabled = false

// exchangedObjects is how many objects the clusters of the exchange's tests hold.
const exchangedObjects = 10_000
