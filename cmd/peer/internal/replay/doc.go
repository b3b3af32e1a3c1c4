// Package replay sends a request trace to caches that are running somewhere, and
// says what the client saw: by Cache-Status which way each answer came, how long
// it took, and what went wrong.
//
// Start from [Run].
package replay
