//go:build linux

package diskstore

import (
	"hash/crc32"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// BenchmarkCheck is what checking 1 MiB in the page cache at each hit would cost, by the processor's CRC-32C and by the checksum of
// the store, and beside it what sending it costs both ends: the kernel's, from the page cache through loopback.
func BenchmarkCheck(b *testing.B) {
	const size = 1 << 20
	path := filepath.Join(b.TempDir(), "body")
	if err := os.WriteFile(path, body(1, size), 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	mapped, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		b.Fatal(err)
	}
	defer syscall.Munmap(mapped)
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	for _, check := range []struct {
		name string
		of   func([]byte)
	}{{"crc32c", func(p []byte) { crc32.Checksum(p, castagnoli) }}, {"xxhash", func(p []byte) { xxhash.Sum64(p) }}} {
		b.Run(check.name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				check.of(mapped)
			}
		})
	}
	b.Run("send", func(b *testing.B) {
		b.SetBytes(size)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			if c, err := l.Accept(); err == nil {
				io.Copy(io.Discard, c)
			}
		}()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		before, sent := processorTime(b), 0
		for b.Loop() {
			f.Seek(0, io.SeekStart)
			if _, err := c.(*net.TCPConn).ReadFrom(io.LimitReader(f, size)); err != nil {
				b.Fatal(err)
			}
			sent++
		}
		c.Close()
		<-done
		b.ReportMetric(float64(processorTime(b)-before)/float64(sent), "cpu-ns/op")
	})
}

func processorTime(b *testing.B) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
