package trace

import (
	"context"
	"time"
)

// Feed sends 0 … n-1 to jobs, each when it is due, until all are sent or ctx ends.
// Being late it hurries, so that the rate is kept in the mean. A nil due means that
// all are due at once.
func Feed(ctx context.Context, n int, due func(i int) time.Time, jobs chan<- int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range n {
		if due != nil {
			timer.Reset(time.Until(due(i)))
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		select {
		case jobs <- i:
		case <-ctx.Done():
			return
		}
	}
}
