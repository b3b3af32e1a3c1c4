//go:build !race

package caches

const raceEnabled = false
