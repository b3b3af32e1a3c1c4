//go:build !race

package exchange

const defaultModelRuns = 2000
