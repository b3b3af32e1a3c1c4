package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// checkStore checks the store's directory as far as possible without making it.
func (c *checker) checkStore() {
	if c.Store == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			c.fail("store", "", fmt.Errorf("is needed: this user has no cache directory: %w", err))
			return
		}
		c.Store = filepath.Join(cache, "summarycache", c.Name)
	}
	c.Digests = filepath.Join(c.Store, "digests")
	for at := filepath.Clean(c.Store); ; at = filepath.Dir(at) {
		st, err := os.Stat(at)
		switch {
		case err == nil && st.IsDir():
		case err == nil && at == filepath.Clean(c.Store):
			c.fail("store", c.Store, errors.New("is a file, not a directory"))
		case err == nil:
			c.fail("store", c.Store, fmt.Errorf("cannot be made: %s is a file", at))
		case at == filepath.Dir(at):
			c.fail("store", c.Store, errors.New(reason(err)))
		default:
			continue // check its parent
		}
		return
	}
}

func (c *checker) checkAccessLog() {
	if c.AccessLog != "" && c.AccessLog != "-" {
		c.fail("access-log", c.AccessLog, checkFile(c.AccessLog))
	}
}

// checkFile returns an error if a file is a directory, or its directory does not exist.
func checkFile(file string) error {
	if st, err := os.Stat(file); err == nil && st.IsDir() {
		return errors.New("is a directory")
	}
	st, err := os.Stat(filepath.Dir(file))
	switch {
	case err != nil:
		return fmt.Errorf("cannot be made: its directory: %s", reason(err))
	case !st.IsDir():
		return fmt.Errorf("cannot be made: %s is a file", filepath.Dir(file))
	}
	return nil
}

// reason returns the text of a system error without its path, which our message has already.
func reason(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
