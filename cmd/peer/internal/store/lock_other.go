//go:build !unix

package store

import "os"

// lock can't keep other processes out here.
func lock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
