// Package compare measures the store of peer beside Pebble, the log-structured library that a
// cache in Go would use, with the same objects: bodies of 1 KiB with headers of 300 bytes. It is
// a module of its own, so that nobody else inherits its dependencies.
//
//	go test -v -bench . -benchtime 1x [-objects N]
//
// Pebble uses its defaults except for these: its write-ahead log is not synced for each object, as
// the store's segments are not; it does not compress, since bodies are compressed already; its
// cache has 64 MiB. A full cache drops the oldest objects: Pebble by deletions, the store by whole
// segments. Both check what they read.
package compare

import (
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"golang.org/x/sys/unix"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
)

var objects = flag.Int("objects", 100_000, "objects that fit")

const (
	bodyBytes   = 1 << 10
	headerBytes = 300
	objectBytes = bodyBytes + headerBytes
	hotBytes    = 64 << 20
)

// A keeper is one of the two stores.
type keeper interface {
	put(key string, object []byte) error
	get(key string) ([]byte, error)
	remove(key string) error // does nothing if the keeper makes room by itself
	close() error
}

func BenchmarkStore(b *testing.B)  { measure(b, openStore) }
func BenchmarkPebble(b *testing.B) { measure(b, openPebble) }

func key(i int) string { return fmt.Sprintf("GET http://www.example.com/object/%07d", i) }

// measure fills a keeper, reads from it, replaces all of its objects, and opens it again. CPU times
// are user and system time of all threads.
func measure(b *testing.B, open func(dir string) (keeper, error)) {
	n := *objects
	micros := func(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(n) }
	for b.Loop() {
		dir := b.TempDir()
		before := heap()
		k, err := open(dir)
		check(b, err)
		object, source := make([]byte, objectBytes), rand.NewChaCha8([32]byte{1})
		fill := func(from, to int) {
			for i := from; i < to; i++ {
				source.Read(object)
				check(b, k.put(key(i), object))
				if i >= n {
					check(b, k.remove(key(i-n)))
				}
			}
		}
		onDisk := func() float64 {
			time.Sleep(2 * time.Second) // until background work is done
			return float64(blocks(dir)) / float64(n) / objectBytes
		}
		start, cpu := time.Now(), used(b)
		fill(0, n)
		b.ReportMetric(micros(time.Since(start), n), "fill-µs")
		b.ReportMetric(micros(used(b)-cpu, n), "fill-CPU-µs")
		b.ReportMetric(onDisk(), "disk/stored")
		b.ReportMetric(float64((heap()-before)/int64(n)), "heap-B/object")

		const hits = 100_000
		cpu = used(b)
		for range hits {
			got, err := k.get(key(rand.IntN(n)))
			check(b, err)
			if len(got) != len(object) {
				b.Fatalf("got %d bytes", len(got))
			}
		}
		b.ReportMetric(micros(used(b)-cpu, hits), "hit-CPU-µs")
		cpu = used(b)
		fill(n, 2*n)
		after := onDisk()
		b.ReportMetric(micros(used(b)-cpu, n), "turnover-CPU-µs")
		b.ReportMetric(after, "disk/stored-then")
		check(b, k.close())
		start = time.Now()
		k, err = open(dir)
		check(b, err)
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "reopen-ms")
		check(b, k.close())
	}
}

func check(b *testing.B, err error) {
	if err != nil {
		b.Helper()
		b.Fatal(err)
	}
}

// used returns the processor time of the process.
func used(b *testing.B) time.Duration {
	var u unix.Rusage
	check(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// blocks returns the bytes that the files below dir take on disk.
func blocks(dir string) (n int64) {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var s unix.Stat_t
		if err == nil && unix.Lstat(path, &s) == nil && !d.IsDir() {
			n += s.Blocks * 512
		}
		return nil
	})
	return n
}

type ours struct{ diskstore.Store }

func openStore(dir string) (keeper, error) {
	room := int64(*objects) * objectBytes * 3 / 2 // segments leave as a whole
	s, err := diskstore.Open(diskstore.Options{Dir: dir, MaxBytes: room, MemoryBytes: hotBytes})
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
	_, err = w.Commit(bodies.Meta{Data: object[:headerBytes]})
	return err
}

func (s ours) get(key string) ([]byte, error) {
	o, ok := s.Get(key)
	if !ok {
		return nil, fs.ErrNotExist
	}
	v, err := s.Open(o, nil)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	src, err := v.Source(0, o.Size())
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(src)
	return append(body, v.(bodies.Described).Value().([]byte)...), err
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

// quiet drops Pebble's log.
type quiet struct{}

func (quiet) Infof(string, ...any)         {}
func (quiet) Errorf(string, ...any)        {}
func (quiet) Fatalf(text string, v ...any) { panic(fmt.Sprintf(text, v...)) }
