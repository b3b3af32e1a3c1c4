//go:build race

package systems

const raceEnabled = true

// exchangedObjects is how many objects the clusters of the exchange's tests hold.
const exchangedObjects = 2_000
