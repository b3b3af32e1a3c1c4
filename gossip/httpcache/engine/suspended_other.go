//go:build !linux

package engine

import "time"

// suspended returns 0: it is not known here for how long the machine was suspended.
func suspended() time.Duration { return 0 }
