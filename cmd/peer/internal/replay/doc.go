// Package replay sends a request trace to running caches and reports what clients see: where each
// answer came from, by its Cache-Status, and which requests failed.
//
// Start from [Run].
package replay
