package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
)

// Try opens the ports, the store and the files as [Start] does, closes them again, and removes what it made. Its error
// is what [Start] would fail with. It joins no cluster, connects to nobody, and answers no request.
func Try(o Options) error {
	made := before(&o.Config)
	n := assemble(o)
	err := n.acquire()
	err = errors.Join(err, n.release())
	if n.proxy != nil { // nobody else has the store
		made.remove()
	}
	return err
}

// absent are files and directories that do not exist.
type absent struct {
	paths []string
	store string
	had   []os.DirEntry // in the store's directory
}

// before returns what a peer may make that is not there.
func before(c *config.Config) (a absent) {
	a.store = c.Store
	a.had, _ = os.ReadDir(c.Store)
	for _, file := range []string{c.AccessLog, c.Store} {
		for at := file; at != "" && at != "-"; at = filepath.Dir(at) { // until one is there: the root is
			if _, err := os.Lstat(at); err == nil {
				break
			}
			a.paths = append(a.paths, at)
		}
	}
	return a
}

// remove removes what was made since. A directory that holds something of others stays.
func (a *absent) remove() {
	now, _ := os.ReadDir(a.store)
	for _, e := range now {
		if !slices.ContainsFunc(a.had, func(old os.DirEntry) bool { return old.Name() == e.Name() }) {
			os.RemoveAll(filepath.Join(a.store, e.Name()))
		}
	}
	for _, path := range a.paths {
		os.Remove(path)
	}
}
