//go:build race

package exchange

// defaultModelRuns is less than without the race detector: each schedule has a single goroutine, so
// there are no races to find.
const defaultModelRuns = 100
