//go:build !linux

package store

import "os"

func noReadAhead(*os.File) {}

// Cached reports false: the system doesn't say.
func (f systemFile) Cached() bool { return false }

// Uncache does nothing here.
func (f systemFile) Uncache() {}
