//go:build !linux

package store

import "os"

func noReadAhead(*os.File) {}

// Cached returns false: it is unknown here.
func (f systemFile) Cached(int64, int64) bool { return false }

// Uncache does nothing here.
func (f systemFile) Uncache(int64, int64) {}
