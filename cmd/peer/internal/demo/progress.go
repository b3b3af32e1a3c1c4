package demo

import (
	"fmt"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/table"
)

// report prints the clients' progress until stop is called: on a terminal in one line that is
// rewritten, elsewhere a new line every two seconds.
func report(o Options, c *cluster) (stop func()) {
	interval, begin, end := 2*time.Second, "", "\n"
	if o.Live {
		interval, begin, end = 100*time.Millisecond, "\r\x1b[K", ""
	}
	ending, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprint(o.Progress, begin, c.progress(len(o.Trace.Requests)), end)
			case <-ending:
				fmt.Fprint(o.Progress, begin, c.progress(len(o.Trace.Requests)), "\n")
				return
			}
		}
	}()
	return func() { close(ending); <-ended }
}

func (c *cluster) progress(requests int) string {
	seen := c.seen.Load()
	line := fmt.Sprintf("%7s of %s requests: %s local, %s siblings, %s origin",
		table.Count(seen.Requests), table.Count(requests),
		table.Percent(seen.Local, seen.Requests), table.Percent(seen.Sibling, seen.Requests), table.Percent(seen.Origin, seen.Requests))
	if seen.Failed > 0 {
		line += fmt.Sprintf(", %s FAILED", table.Count(seen.Failed))
	}
	return line
}
