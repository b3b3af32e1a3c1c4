package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/feed"
)

// A manifest is the one file whose contents change: it names the others.
type manifest struct {
	Kind     string // of the keys; see keyOf
	Planned  uint64 // keys
	Version  string // of the snapshot
	Head     []byte // of the snapshot
	Snapshot file   // in pieces
	Deltas   []file // each leads from the version From to the next one's, the last to the snapshot's
}

type file struct {
	Name   string // the beginning of SHA256
	SHA256 string
	Bytes  int
	From   string `json:",omitempty"`
}

const manifestName = "manifest.json"

var limits = digest.Limits{Bytes: 1 << 30, Memory: 8 << 30, Profile: digest.Paths} // for some 500 million keys

// publish makes the files of keys in a directory, with a delta from those that were there.
func publish(dir string, keys []digest.Key, kind string, rate float64, out io.Writer) error {
	former, err := readManifest(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m := manifest{Kind: kind, Planned: uint64(len(keys))}
	if former.Kind == kind && m.Planned <= former.Planned+former.Planned/10 { // so a tenth more false positives at most
		m.Planned = former.Planned
	}
	g, err := digest.GeometryFor(m.Planned, rate)
	if err != nil {
		return err
	}
	g.Profile = digest.Paths
	v := digest.Version{Epoch: uint64(time.Now().UnixNano())}
	old, err := readFilter(filepath.Join(dir, former.Snapshot.Name))
	follows := err == nil && old.Geometry() == g
	if follows {
		v = old.Version()
		v.Sequence++
	}
	f, err := digest.FilterOf(g, v, slices.Values(keys))
	if err != nil {
		return err
	}
	if follows {
		change, err := digest.Diff(old, f)
		if err != nil {
			return err
		}
		b, err := change.AppendTo(nil, old)
		if err != nil {
			return err
		}
		d, err := write(dir, b)
		if err != nil {
			return err
		}
		d.From = former.Version
		m.Deltas = append(former.Deltas[:len(former.Deltas):len(former.Deltas)], d)
	}
	return m.save(dir, f, former, out)
}

// save writes the snapshot and the manifest. What was in the former manifest, and is not in this one, goes.
func (m *manifest) save(dir string, f *digest.Filter, former manifest, out io.Writer) (err error) {
	b := f.AppendPieces(nil, 0)
	if m.Snapshot, err = write(dir, b); err != nil {
		return err
	}
	m.Version, m.Head = f.Version().String(), b[:min(len(b), digest.HeadBytes)]
	for i, sum := len(m.Deltas)-1, 0; i >= 0; i-- {
		if sum += m.Deltas[i].Bytes; sum > len(b)/2 { // a follower that lacks more takes the snapshot
			m.Deltas = m.Deltas[i+1:]
			break
		}
	}
	text, _ := json.MarshalIndent(m, "", "  ")
	if err := replace(dir, manifestName, text); err != nil {
		return err
	}
	named := append(m.Deltas[:len(m.Deltas):len(m.Deltas)], m.Snapshot)
	for _, gone := range append(former.Deltas, former.Snapshot) {
		if gone.Name != "" && !slices.ContainsFunc(named, func(f file) bool { return f.Name == gone.Name }) {
			os.Remove(filepath.Join(dir, gone.Name))
		}
	}
	_, err = fmt.Fprintf(out, "version %s, %d keys: %d bytes, and %d deltas\n", m.Version, f.Keys(),
		len(b), len(m.Deltas))
	return err
}

// write writes a file that is named by its contents.
func write(dir string, b []byte) (file, error) {
	sum := sha256.Sum256(b)
	f := file{Name: hex.EncodeToString(sum[:8]), SHA256: hex.EncodeToString(sum[:]), Bytes: len(b)}
	return f, replace(dir, f.Name, b)
}

// replace writes a file whole or not at all.
func replace(dir, name string, b []byte) error {
	to := filepath.Join(dir, name)
	if err := cmp.Or(os.MkdirAll(dir, 0o755), os.WriteFile(to+".new", b, 0o644)); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

func readFilter(name string) (*digest.Filter, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return digest.DecodeFilter(b, limits)
}

// readManifest reads that of a directory or web server.
func readManifest(at string) (m manifest, err error) {
	b, err := read(at, manifestName, "", http.StatusOK)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	return m, err
}

// client reads files as well.
var client = func() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.RegisterProtocol("file", http.NewFileTransport(http.Dir("/")))
	return &http.Client{Transport: t, Timeout: 10 * time.Minute}
}()

// read reads a file of a directory or web server, or a range of it.
func read(at, name, bytes string, want int) ([]byte, error) {
	if !strings.Contains(at, "://") {
		path, err := filepath.Abs(at)
		if err != nil {
			return nil, err
		}
		at = "file://" + path
	}
	q, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(at, "/")+"/"+name, nil)
	if err != nil {
		return nil, err
	}
	if bytes != "" {
		q.Header.Set("Range", "bytes="+bytes)
	}
	resp, err := client.Do(q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case want:
		return io.ReadAll(io.LimitReader(resp.Body, int64(limits.Bytes)))
	case http.StatusNotFound:
		return nil, fmt.Errorf("%s: %w", q.URL, fs.ErrNotExist)
	}
	return nil, fmt.Errorf("%s: %s", q.URL, resp.Status)
}

// A piecewise file is read piece by piece.
type piecewise struct{ at, name string }

// ReadAt implements [io.ReaderAt].
func (p piecewise) ReadAt(b []byte, at int64) (int, error) {
	got, err := read(p.at, p.name, fmt.Sprintf("%d-%d", at, at+int64(len(b))-1), http.StatusPartialContent)
	if n := copy(b, got); err != nil || n == len(b) {
		return n, err
	}
	return len(got), io.EOF
}

// follow makes the files of a directory those of a web server, by deltas if they lead on from what is there.
func follow(url, dir string, out io.Writer) error {
	m, err := readManifest(url)
	if err != nil {
		return err
	}
	here, err := readManifest(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || here.Version == m.Version {
		return err
	}
	replica, get := feed.NewReplica(limits), []file{m.Snapshot}
	i := slices.IndexFunc(m.Deltas, func(f file) bool { return f.From == here.Version })
	if b, err := os.ReadFile(filepath.Join(dir, here.Snapshot.Name)); i >= 0 && err == nil {
		replica.Handle(b)
		get = m.Deltas[i:]
	}
	received := 0
	for _, want := range get {
		b, err := read(url, want.Name, "", http.StatusOK)
		if err != nil {
			return err
		}
		got, err := write(dir, b)
		if _, changed, _ := replica.Handle(b); err != nil || !changed || got.SHA256 != want.SHA256 {
			return cmp.Or(err, fmt.Errorf("%s is not what the manifest says", want.Name))
		}
		received += len(b)
	}
	f := replica.Filter()
	if f == nil || f.Version().String() != m.Version {
		return fmt.Errorf("the files do not lead to version %s", m.Version)
	}
	if m.Deltas = nil; get[0].From != "" {
		m.Deltas = append(here.Deltas[:len(here.Deltas):len(here.Deltas)], get...)
	}
	fmt.Fprintf(out, "%d bytes received: ", received)
	return m.save(dir, f, here, out)
}
