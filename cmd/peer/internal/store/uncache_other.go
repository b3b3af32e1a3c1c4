//go:build !linux

package store

// Uncache does nothing here.
func (f systemFile) Uncache() {}
