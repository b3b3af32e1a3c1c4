package main

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"github.com/summarycache/summarycache/gossip"
)

// nginxIdentity returns the identity of a key of nginx: the name of its file.
func nginxIdentity(key string) string {
	sum := md5.Sum([]byte(key))
	return hex.EncodeToString(sum[:])
}

// An Nginx follows the directory of proxy_cache_path. Its files appear whole, since nginx writes them elsewhere and
// renames them: use_temp_path=off is not needed.
type Nginx struct {
	Holdings *gossip.Holdings
	watcher  *fsnotify.Watcher
}

// follow watches dir until ctx ends. If events are lost, it looks at all files again.
func (n *Nginx) follow(ctx context.Context, dir string) (err error) {
	if n.watcher, err = fsnotify.NewWatcher(); err != nil {
		return err
	}
	defer n.watcher.Close()
	if err := n.look(dir); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-n.watcher.Events:
			n.note(e)
		case err := <-n.watcher.Errors:
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				err = n.look(dir)
			}
			if err != nil {
				return err
			}
		}
	}
}

// note notes a change.
func (n *Nginx) note(e fsnotify.Event) {
	name := filepath.Base(e.Name)
	switch {
	case e.Has(fsnotify.Remove), e.Has(fsnotify.Rename):
		if isKey(name) {
			n.Holdings.Remove(name)
		}
	case e.Has(fsnotify.Create) && isKey(name):
		n.Holdings.Add(name)
	case e.Has(fsnotify.Create):
		if info, err := os.Stat(e.Name); err == nil && info.IsDir() {
			n.walk(e.Name, func(name string) { n.Holdings.Add(name) })
		}
	}
}

// look makes the holdings those of the files there are now.
func (n *Nginx) look(dir string) error {
	held := map[string]bool{}
	if err := n.walk(dir, func(name string) { held[name] = true }); err != nil {
		return err
	}
	n.Holdings.Replace(maps.Keys(held))
	return nil
}

// walk watches the directories below dir, each before it is read, so that no file is missed, and calls found for each
// file.
func (n *Nginx) walk(dir string, found func(name string)) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != dir:
			return nil // it went meanwhile
		case err != nil:
			return err
		case d.IsDir():
			return n.watcher.Add(path)
		case isKey(d.Name()):
			found(d.Name())
		}
		return nil
	})
}

// isKey reports whether a file is named by an MD5. Others are still being written.
func isKey(name string) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == md5.Size
}
