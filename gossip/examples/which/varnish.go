package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/gossip"
)

// A Varnish follows the log of varnishd. An object is known there by the number of the fetch that brought it.
type Varnish struct {
	Holdings *gossip.Holdings
	fetches  map[string]*fetched // those under way, and those whose objects are held
	copies   map[string]int      // how many objects a key has: variants, and what replaces another
}

// A fetched object.
type fetched struct {
	host, path string
	held       bool
}

const mostFetches = 1 << 24 // beyond so many objects nothing more is noted: a log that never reports an end is broken

// follow runs varnishlog for the instance of that name; "" = the default one. It ends with ctx, or when varnishd ends,
// after which nothing is held.
func (v *Varnish) follow(ctx context.Context, name string) error {
	args := []string{"-g", "raw", "-i", "BereqURL,BereqHeader,TTL,Storage,ExpKill,ExpBan,End"}
	if name != "" {
		args = append(args, "-n", name)
	}
	cmd := exec.CommandContext(ctx, "varnishlog", args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	v.read(out)
	v.Holdings.Replace(func(func(string) bool) {})
	return fmt.Errorf("varnishlog has ended: %v", cmd.Wait())
}

// read follows a log to its end. A line has the number of a transaction, a tag, the side and a text.
func (v *Varnish) read(r io.Reader) {
	v.fetches, v.copies = map[string]*fetched{}, map[string]int{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 3 {
			continue
		}
		id, tag, text := f[0], f[1], append(f[3:], "", "")
		switch tag {
		case "BereqURL":
			v.fetch(id).path = text[0]
		case "BereqHeader":
			if strings.EqualFold(text[0], "Host:") {
				v.fetch(id).host = text[1]
			}
		case "Storage":
			v.hold(id)
		case "TTL":
			if slices.Contains(text, "uncacheable") {
				delete(v.fetches, id)
			}
		case "ExpBan": // "1234 banned lookup"
			v.drop(text[0])
		case "ExpKill":
			// "LRU x=1234", and as the version is, "EXP_Expired x=1234 t=..." or "EXP_Removed x=1234 t=... h=..."
			if text[0] == "LRU" || text[0] == "EXP_Expired" || text[0] == "EXP_Removed" {
				v.drop(strings.TrimPrefix(text[1], "x="))
			}
		case "End":
			if f := v.fetches[id]; f != nil && !f.held {
				delete(v.fetches, id)
			}
		}
	}
}

func (v *Varnish) fetch(id string) *fetched {
	f := v.fetches[id]
	if f == nil {
		f = new(fetched)
		if len(v.fetches) < mostFetches {
			v.fetches[id] = f
		}
	}
	return f
}

func (v *Varnish) hold(id string) {
	f := v.fetches[id]
	if f == nil || f.held || f.path == "" {
		return
	}
	f.held = true
	if v.copies[f.host+f.path]++; v.copies[f.host+f.path] == 1 {
		v.Holdings.Add(f.host + f.path)
	}
}

func (v *Varnish) drop(id string) {
	f := v.fetches[id]
	if f == nil || !f.held {
		return
	}
	delete(v.fetches, id)
	if v.copies[f.host+f.path]--; v.copies[f.host+f.path] == 0 {
		delete(v.copies, f.host+f.path)
		v.Holdings.Remove(f.host + f.path)
	}
}
