//go:build !linux

package sd

import "time"

// Slacken does nothing: only Linux lets threads sleep longer than they ask for.
func Slacken() {}

// monotonic returns 0: only service managers on Linux use it.
func monotonic() time.Duration { return 0 }
