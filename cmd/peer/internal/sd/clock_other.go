//go:build !linux

package sd

import "time"

// monotonic returns 0: only service managers on Linux use it.
func monotonic() time.Duration { return 0 }
