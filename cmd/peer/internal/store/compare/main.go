// Command compare holds the store of peer against Pebble, the log-structured library that a cache
// in Go would take, with the same objects: bodies of 1 KiB with headers of 300 bytes. It is
// a module of its own, so that nobody inherits its dependencies.
//
//	go run . [-n OBJECTS] [-dir DIRECTORY]
//
// Pebble has a write-ahead log that is not synced for each object, as the store's segments are not,
// no compression (bodies are compressed already), 64 MiB of cache and the rest as by default. A
// cache that is full lets the oldest go: by deletions in Pebble, by whole segments in the store.
// Both check what they read.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"golang.org/x/sys/unix"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
)

const (
	bodyBytes   = 1 << 10
	headerBytes = 300
	hotBytes    = 64 << 20
)

// A keeper is what is compared.
type keeper interface {
	put(key string, object []byte) error
	get(key string) ([]byte, error)
	remove(key string) error // nil = it makes room by itself
	close() error
}

func main() {
	n := flag.Int("n", 100_000, "objects that fit")
	dir := flag.String("dir", "", "where the files go; without it, the system's place for temporary ones")
	flag.Parse()
	room := int64(*n) * (bodyBytes + headerBytes) * 3 / 2 // segments leave as a whole
	fmt.Printf("%d objects fit. CPU µs is user's and system's time of all threads.\n\n", *n)
	fmt.Println("| | filled, µs | CPU µs | disk / stored | heap, B an object | a hit, CPU µs | turned over once, CPU µs an object | disk / stored | opened again, ms |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, of := range []struct {
		name string
		open func(dir string) (keeper, error)
	}{
		{"store", func(dir string) (keeper, error) { return openStore(dir, room) }},
		{"pebble", openPebble},
	} {
		if err := measure(of.name, *n, *dir, of.open); err != nil {
			log.Fatalf("%s: %v", of.name, err)
		}
	}
}

func key(i int) string { return fmt.Sprintf("GET http://www.example.com/object/%07d", i) }

func measure(name string, n int, parent string, open func(string) (keeper, error)) error {
	dir, err := os.MkdirTemp(parent, "compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	runtime.GC()
	before := heap()
	k, err := open(dir)
	if err != nil {
		return err
	}
	object := make([]byte, headerBytes+bodyBytes)
	source := rand.NewChaCha8([32]byte{1})
	fill := func(from, to int) error {
		for i := from; i < to; i++ {
			source.Read(object)
			if err := k.put(key(i), object); err != nil {
				return err
			}
			if i >= n {
				if err := k.remove(key(i - n)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	start, cpu := time.Now(), used()
	if err := fill(0, n); err != nil {
		return err
	}
	filled, fillCPU := time.Since(start), used()-cpu
	time.Sleep(2 * time.Second) // for what goes on in the background
	disk := float64(onDisk(dir)) / float64(n) / (headerBytes + bodyBytes)
	perObject := (heap() - before) / int64(n)

	const hits = 100_000
	cpu = used()
	for range hits {
		got, err := k.get(key(rand.IntN(n)))
		if err != nil || len(got) != len(object) {
			return fmt.Errorf("%d bytes, %w", len(got), err)
		}
	}
	hit := used() - cpu
	cpu = used()
	if err := fill(n, 2*n); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	turned := used() - cpu
	turnedDisk := float64(onDisk(dir)) / float64(n) / (headerBytes + bodyBytes)
	if err := k.close(); err != nil {
		return err
	}
	start = time.Now()
	if k, err = open(dir); err != nil {
		return err
	}
	again := time.Since(start)
	fmt.Printf("| %s | %.1f | %.1f | %.2f | %d | %.1f | %.1f | %.2f | %d |\n", name, micros(filled, n), micros(fillCPU, n), disk, perObject,
		micros(hit, hits), micros(turned, n), turnedDisk, again.Milliseconds())
	return k.close()
}

func micros(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(n) }

// used is the processor time of the process.
func used() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func onDisk(dir string) (n int64) {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var s unix.Stat_t
		if err == nil && unix.Lstat(path, &s) == nil && !d.IsDir() {
			n += s.Blocks * 512
		}
		return nil
	})
	return n
}

type ours struct{ *store.Store }

func openStore(dir string, room int64) (keeper, error) {
	s, err := store.Open(store.Options{Dir: dir, MaxBytes: room, MemoryBytes: hotBytes, Logger: slog.New(slog.DiscardHandler)})
	return ours{s}, err
}

func (s ours) put(key string, object []byte) error {
	w, err := s.Create(key, bodyBytes)
	if err != nil {
		return err
	}
	if err := w.Write(context.Background(), object[headerBytes:]); err != nil {
		return err
	}
	_, err = w.Commit(store.Meta{Data: object[:headerBytes]})
	return err
}

func (s ours) get(key string) ([]byte, error) {
	o, ok := s.Get(key)
	if !ok {
		return nil, fs.ErrNotExist
	}
	v, err := s.Open(o, store.Serve)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	src, err := v.Source(0, v.Size())
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(src)
	return append(body, v.Value().([]byte)...), err
}

func (s ours) remove(string) error { return nil }
func (s ours) close() error        { return s.Close() }

type theirs struct{ *pebble.DB }

func openPebble(dir string) (keeper, error) {
	cache := pebble.NewCache(hotBytes)
	defer cache.Unref()
	o := &pebble.Options{Cache: cache, Logger: quiet{}}
	for i := range o.Levels {
		o.Levels[i].Compression = func() *block.CompressionProfile { return block.NoCompression }
	}
	db, err := pebble.Open(dir, o)
	return theirs{db}, err
}

func (p theirs) put(key string, object []byte) error {
	return p.Set([]byte(key), object, pebble.NoSync)
}

func (p theirs) get(key string) ([]byte, error) {
	v, closer, err := p.Get([]byte(key))
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	return append([]byte(nil), v...), nil
}

func (p theirs) remove(key string) error { return p.Delete([]byte(key), pebble.NoSync) }
func (p theirs) close() error            { return p.Close() }

// quiet is a logger of Pebble's that says nothing.
type quiet struct{}

func (quiet) Infof(string, ...any)         {}
func (quiet) Errorf(string, ...any)        {}
func (quiet) Fatalf(text string, v ...any) { log.Fatalf(text, v...) }
