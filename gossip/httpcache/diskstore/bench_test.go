//go:build linux

package diskstore

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// BenchmarkSend sends bodies from disk over a connection, a different one each time,
// and reports the processor time of the sending thread: by sendfile, by reading and
// writing blocks, and checked, which is how a store does it.
func BenchmarkSend(b *testing.B) {
	for _, size := range []int{128 << 10, 300_000, 1 << 20} { // shorter ones are read into memory
		s := open(b, Options{MaxBytes: 1 << 30})
		var views []*view
		for i := range (64 << 20) / size { // more than a processor keeps to itself
			o := put(b, s, fmt.Sprint(i), body(uint64(i), size), bodies.Meta{})
			v, err := s.Open(o, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer v.Close()
			views = append(views, v.(*view))
		}
		buf := make([]byte, blockSize)
		for _, way := range []struct {
			name string
			send func(to int, v *view) error
		}{
			{"sendfile", func(to int, v *view) error {
				from := int(v.f.File.(systemFile).Fd())
				for off := int64(0); off < v.Size(); {
					if _, err := unix.Sendfile(to, from, &off, int(v.Size()-off)); err != nil {
						return err
					}
				}
				return nil
			}},
			{"unchecked", func(to int, v *view) error {
				for off := int64(0); off < v.Size(); off += blockSize {
					n, err := v.f.ReadAt(buf[:min(blockSize, v.Size()-off)], off)
					if err != nil {
						return err
					}
					if err := writeAll(to, buf[:n]); err != nil {
						return err
					}
				}
				return nil
			}},
			{"checked", func(to int, v *view) error {
				src, err := v.Source(0, v.Size())
				if err != nil {
					return err
				}
				blocks := src.(*span)
				defer blocks.Park()
				for {
					p, err := blocks.Next()
					if err == io.EOF {
						return nil
					} else if err != nil {
						return err
					}
					if err := writeAll(to, p); err != nil {
						return err
					}
					blocks.Advance(len(p))
				}
			}},
		} {
			b.Run(fmt.Sprintf("size=%dk/%s", size>>10, way.name), func(b *testing.B) {
				to := drained(b)
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				b.SetBytes(int64(size))
				start, i := threadTime(), 0
				for b.Loop() {
					if err := way.send(to, views[i%len(views)]); err != nil {
						b.Fatal(err)
					}
					i++
				}
				b.ReportMetric(float64(threadTime()-start)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

func writeAll(to int, p []byte) error {
	for len(p) > 0 {
		n, err := unix.Write(to, p)
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// drained returns a blocking socket whose other end reads and forgets.
func drained(b *testing.B) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	f, err := server.(*net.TCPConn).File()
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		buf := make([]byte, 256<<10)
		for {
			if _, err := client.Read(buf); err != nil {
				return
			}
		}
	}()
	b.Cleanup(func() { f.Close(); server.Close(); client.Close() })
	return int(f.Fd()) // which makes it blocking
}

func threadTime() time.Duration {
	var r unix.Rusage
	unix.Getrusage(unix.RUSAGE_THREAD, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkHash compares what a block could be checked by.
func BenchmarkHash(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10, 256 << 10} {
		p := body(1, size)
		for _, h := range []struct {
			name string
			sum  func()
		}{{"xxhash64", func() { xxhash.Sum64(p) }}, {"sha256", func() { sha256.Sum256(p) }}} {
			b.Run(fmt.Sprintf("size=%dk/%s", size>>10, h.name), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					h.sum()
				}
			})
		}
	}
}
