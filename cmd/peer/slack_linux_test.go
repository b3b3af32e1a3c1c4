package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTimerSlack: all threads of a peer sleep with its timer slack, the monitor of Go's runtime too, which starts before main. The process,
// its name and its arguments are those that were started. A slack that somebody chose stays, and so does any that the system does not
// keep, after one attempt.
func TestTimerSlack(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // a process has the slack of the thread that starts it
	defer runtime.UnlockOSThread()
	for _, c := range []struct {
		name, tried string
		slack, want uintptr // ns
	}{
		{name: "the system's", slack: 50_000, want: 1_000_000},
		{name: "chosen", slack: 70_000, want: 70_000},
		{name: "not kept", slack: 50_000, tried: "1", want: 50_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := unix.Prctl(unix.PR_SET_TIMERSLACK, c.slack, 0, 0, 0); err != nil {
				t.Skip("needs timer slacks: ", err)
			}
			defer unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // as before
			t.Setenv("SUMMARYCACHE_SLACK", c.tried)
			cmd := exec.Command(binary, local(t, "a")...)
			cmd.Args[0] = "another"
			p := spawnCommand(t, cmd)
			proc := fmt.Sprintf("/proc/%d/", cmd.Process.Pid)
			threads, err := filepath.Glob(proc + "task/*")
			if err != nil || len(threads) < 3 {
				t.Fatal(threads, err)
			}
			for _, thread := range threads {
				text, err := os.ReadFile("/proc/" + filepath.Base(thread) + "/timerslack_ns")
				if err != nil {
					t.Skip("others' slacks are root's to read: ", err)
				}
				if got := strings.TrimSpace(string(text)); got != fmt.Sprint(c.want) {
					t.Errorf("the slack of thread %s of %d is %s ns, want %d", filepath.Base(thread), cmd.Process.Pid, got, c.want)
				}
			}
			text, err := os.ReadFile(proc + "cmdline")
			if err != nil || !strings.HasPrefix(string(text), "another\x00run\x00") {
				t.Errorf("the command line is %q, %v", text, err)
			}
			text, err = os.ReadFile(proc + "comm")
			if want := filepath.Base(binary)[:min(15, len(filepath.Base(binary)))]; err != nil || strings.TrimSpace(string(text)) != want {
				t.Errorf("the process is named %q, %v, want %q", text, err, want)
			}
			if code := p.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}
