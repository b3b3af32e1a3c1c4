//go:build !linux

package diskstore

import (
	"errors"
	"os"
)

func (system) Free(string) (int64, error) { return 0, errors.ErrUnsupported }

func noReadAhead(*os.File) {}

// Cached returns false: it is unknown here.
func (f systemFile) Cached(int64, int64) bool { return false }

// Uncache does nothing here.
func (f systemFile) Uncache(int64, int64) {}
