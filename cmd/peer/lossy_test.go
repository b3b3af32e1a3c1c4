package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A writer that hangs costs whoever logs a moment, once, and lines that are counted.
func TestLossy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		l := newLossy(to)
		told := int64(0)
		l.tells = func(n int64) { told += n }
		begun := time.Now()
		for i := range 100 {
			fmt.Fprintf(l, "line %d\n", i)
		}
		if took := time.Since(begun); took != hangs {
			t.Errorf("100 lines took %v, want %v", took, hangs)
		}
		var mu sync.Mutex
		var got strings.Builder
		go func() {
			b := make([]byte, 100)
			for {
				n, err := from.Read(b)
				if err != nil {
					return
				}
				mu.Lock()
				got.Write(b[:n])
				mu.Unlock()
			}
		}()
		synctest.Wait()
		begun = time.Now()
		for i := 100; i < 103; i++ {
			fmt.Fprintf(l, "line %d\n", i)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("3 lines that are read took %v", took)
		}
		synctest.Wait()
		if want := "line 0\nline 100\nline 101\nline 102\n"; got.String() != want || told != 99 {
			t.Errorf("%q, told of %d, want %q and 99", got.String(), told, want)
		}
		to.Close()
	})
}
