//go:build unix

package main

import (
	"os"
	"syscall"
)

// replacing are the signals on which another program continues in this process.
var replacing = []os.Signal{syscall.SIGUSR2}
