//go:build !amd64

package index

import "sync/atomic"

func prefetch(p *uint64) { atomic.LoadUint64(p) }
