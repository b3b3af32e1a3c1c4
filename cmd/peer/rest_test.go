package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// At rest a peer sleeps, since a machine may have many of them. On two busy processors it was measured at
// 26 to 38 switches a second alone, and 60 to 74 among ten, with 0.08 to 0.13 and 0.15 to 0.25 % of one.
func TestAtRestAPeerRests(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and watches them for seconds; there is nothing for the race detector in it")
	}
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("needs Linux: ", err)
	}
	for _, row := range []struct {
		peers         int
		switches, cpu float64 // a second, of one peer on average
	}{
		{1, 40, 0.01}, // 0.002 where nothing else runs; beside other work each wake-up takes several times as long
		{10, 80, 0.01},
	} {
		t.Run(fmt.Sprintf("%d peers", row.peers), func(t *testing.T) {
			var all []*process
			for i := range row.peers {
				args := []string{"run", "--name", fmt.Sprint("p", i), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0", "--store", t.TempDir()}
				if i > 0 {
					args = append(args, "--join", all[0].gossip)
				}
				all = append(all, spawn(t, args...))
			}
			eventually(t, time.Minute, "the peers know each other", func() bool { return len(all[row.peers-1].status().Members) >= row.peers-1 })
			// The best of a few spans: what follows the start, and the garbage collection of this, is no rest.
			var got string
			for range 10 {
				began, before := time.Now(), activityOf(t, all)
				<-time.After(2 * time.Second) // of a process on the machine's clock
				after, span := activityOf(t, all), time.Since(began).Seconds()*float64(row.peers)
				switches, cpu := (after.switches-before.switches)/span, (after.cpu-before.cpu)/span
				if got = fmt.Sprintf("%.0f voluntary context switches a second and %.2f %% of a processor, want at most %.0f and %.2f %%", switches, 100*cpu, row.switches, 100*row.cpu); switches <= row.switches && cpu <= row.cpu {
					t.Log(got)
					return
				}
			}
			t.Error(got)
		})
	}
}

// activity is what processes have done since they started.
type activity struct{ switches, cpu float64 } // cpu in seconds

func activityOf(t *testing.T, all []*process) (sum activity) {
	t.Helper()
	for _, p := range all {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.cmd.Process.Pid))
		if err != nil || len(tasks) == 0 {
			t.Fatal("no threads of a peer: ", err)
		}
		for _, task := range tasks {
			f, err := os.Open(filepath.Join(task, "status"))
			if err != nil {
				t.Fatal(err)
			}
			for lines := bufio.NewScanner(f); lines.Scan(); {
				if n, ok := strings.CutPrefix(lines.Text(), "voluntary_ctxt_switches:"); ok {
					sum.switches += number(t, strings.TrimSpace(n))
				}
			}
			f.Close()
			times, err := os.ReadFile(filepath.Join(task, "schedstat"))
			if err != nil {
				t.Fatal(err)
			}
			ran, _, _ := strings.Cut(string(times), " ")
			sum.cpu += number(t, ran) / 1e9
		}
	}
	return sum
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
