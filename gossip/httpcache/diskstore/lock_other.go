//go:build !unix

package diskstore

import "os"

// lock does not keep other processes out: these systems have no flock.
func lock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
