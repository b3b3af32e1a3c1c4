//go:build !linux

package diskstore

import (
	"errors"
	"os"
)

func (system) Free(string) (int64, error) { return 0, errors.ErrUnsupported }

func noReadAhead(*os.File) {}
