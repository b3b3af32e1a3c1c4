//go:build !linux

package sd

import "time"

// monotonic is 0: only Linux has managers that ask.
func monotonic() time.Duration { return 0 }
