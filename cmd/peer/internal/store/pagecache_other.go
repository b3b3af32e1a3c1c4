//go:build !linux

package store

import "os"

func noReadAhead(*os.File) {}

// Cached reports false: the system doesn't say.
func (f systemFile) Cached(int64, int64) bool { return false }

// Uncache does nothing here.
func (f systemFile) Uncache(int64, int64) {}
