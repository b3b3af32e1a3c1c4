package sd

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// systemSlack is the timer slack of a thread if nobody has set another; slack is that of a peer.
//
// A thread may sleep so much longer than it asked for. Go's monitor, as long as anything runs, naps for 20 µs at a time, which are 70 with
// the system's slack: a peer with little to do mostly did that. With a longer one it gives the processor of a thread that is blocked in a
// system call, such as a read of the disk, to another up to so much later.
const systemSlack, slack = 50 * time.Microsecond, time.Millisecond

// slackened is the variable that tells the program executed by Slacken not to try again: not every system keeps the slack.
const slackened = "SUMMARYCACHE_SLACK"

// Slacken has all threads of this program sleep with a slack of a millisecond, unless somebody chose one (TimerSlackNSec= of systemd). A
// thread takes the slack of the one that starts it, and Go starts its monitor before main. So this executes the program again, in this
// process: call it first. Where that cannot be done, nothing changes but the slack of some threads.
func Slacken() {
	if os.Getenv(slackened) != "" {
		os.Unsetenv(slackened)
		return
	}
	runtime.LockOSThread() // whose slack execve keeps
	defer runtime.UnlockOSThread()
	if now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || time.Duration(now) != systemSlack {
		return
	}
	// not /proc/self/exe, which would be the name of the process
	if program, err := os.Executable(); err == nil && unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) == nil {
		syscall.Exec(program, os.Args, append(os.Environ(), slackened+"=1"))
	}
}

// monotonic returns CLOCK_MONOTONIC, which the manager compares with its own reading.
func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
