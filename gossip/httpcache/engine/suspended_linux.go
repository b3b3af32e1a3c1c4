package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspended returns for how long the machine was suspended since it was started.
func suspended() time.Duration {
	var all, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil {
		return 0
	}
	return time.Duration(all.Nano() - awake.Nano())
}
