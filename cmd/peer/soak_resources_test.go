//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// resources are the resources that a peer uses.
type resources struct{ goroutines, files, heap float64 }

func (s *soak) resources() (r resources) {
	s.t.Helper()
	s.text("/debug/pprof/heap?gc=1")
	for line := range strings.Lines(s.text("/metrics")) {
		fmt.Sscanf(line, "go_goroutines %g", &r.goroutines)
		fmt.Sscanf(line, "process_open_fds %g", &r.files)
		fmt.Sscanf(line, "go_memstats_heap_alloc_bytes %g", &r.heap)
	}
	return r
}

// text returns the first peer's admin response at a path.
func (s *soak) text(path string) string {
	s.t.Helper()
	answer, err := client.Get("http://" + s.peers[0].admin + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// backToTheStart waits until the first peer uses no more resources than at the start, apart from
// those that it keeps on purpose.
func (s *soak) backToTheStart(before resources) {
	const (
		kept = 4<<20 + 12<<20 // hot objects, and what is known of those on disk
		open = 45 + 2*72      // objects of 1 MiB stay open, and the two files of each segment
	)
	s.origin.Close() // or the peer keeps the connections for a minute
	var now resources
	deadline := time.Now().Add(30 * time.Second)
	for {
		client.CloseIdleConnections()
		now = s.resources()
		if now.goroutines <= before.goroutines+5 && now.files <= before.files+open && now.heap <= before.heap+kept {
			s.t.Logf("goroutines %g, then %g; files %g, then %g; heap %.1f MiB, then %.1f", before.goroutines, now.goroutines,
				before.files, now.files, before.heap/(1<<20), now.heap/(1<<20))
			return
		}
		if time.Now().After(deadline) {
			s.t.Errorf("the first peer held %+v and holds %+v\n%s", before, now, s.text("/debug/pprof/goroutine?debug=1"))
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}
