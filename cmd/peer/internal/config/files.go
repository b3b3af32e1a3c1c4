package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// store checks what can be told of the directory without making it.
func (c *checker) store(dir, name string) string {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			c.fail("store", "", fmt.Errorf("is needed: this user has no cache directory: %w", err))
			return ""
		}
		dir = filepath.Join(cache, "summarycache", name)
	}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		st, err := os.Stat(at)
		switch {
		case err == nil && st.IsDir():
			return dir
		case err == nil && at == filepath.Clean(dir):
			c.fail("store", dir, errors.New("is a file, not a directory"))
			return dir
		case err == nil:
			c.fail("store", dir, fmt.Errorf("cannot be made: %s is a file", at))
			return dir
		case at == filepath.Dir(at):
			c.fail("store", dir, errors.New(reason(err)))
			return dir
		}
	}
}

// digests returns the file that they are kept in. That its directory can't be written
// to is found out when it is needed, since it may be the store's, and not made yet.
func (c *checker) digests(file, store string) string {
	switch file {
	case "none":
		return ""
	case "":
		return filepath.Join(store, "digests")
	}
	if st, err := os.Stat(file); err == nil && !st.Mode().IsRegular() {
		c.fail("digests", file, errors.New("is not a file"))
	} else {
		c.fail("digests", file, directoryOf(file))
	}
	return file
}

// accessLog checks what can be told of the file without making it.
func (c *checker) accessLog(file string) string {
	if file == "" || file == "-" {
		return file
	}
	if st, err := os.Stat(file); err == nil && st.IsDir() {
		c.fail("access-log", file, errors.New("is a directory"))
	} else {
		c.fail("access-log", file, directoryOf(file))
	}
	return file
}

// directoryOf reports that a file has no directory to be in.
func directoryOf(file string) error {
	st, err := os.Stat(filepath.Dir(file))
	switch {
	case err != nil:
		return fmt.Errorf("cannot be made: its directory: %s", reason(err))
	case !st.IsDir():
		return fmt.Errorf("cannot be made: %s is a file", filepath.Dir(file))
	}
	return nil
}

// reason is what the system said, without the path that our sentence has.
func reason(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
