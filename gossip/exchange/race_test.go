//go:build race

package exchange

// defaultModelRuns is fewer than without the race detector: the model has one
// goroutine a schedule, and nothing to race.
const defaultModelRuns = 100
