//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Another program fills the disk of 40 MB on which a peer has its store. Clients are served whole all the same, the
// operator is told, and once there is room again things are stored, without a restart.
func TestStreetFullDisk(t *testing.T) {
	onTheStreet(t, func(s *street) {
		const size = 300_000
		o := s.origin("127.0.0.1:80", func(r *http.Request) string { return noise(byte(len(r.URL.Path)), size) + r.URL.Path })
		body := func(i int) (string, string) { p := fmt.Sprint("/", i); return p, noise(byte(len(p)), size) + p }
		disk := filepath.Join(s.TempDir(), "disk")
		s.run("mkdir", disk)
		s.run("mount", "-t", "tmpfs", "-o", "size=40m", "none", disk)
		s.Cleanup(func() { exec.Command("umount", "-l", disk).Run() })
		a := s.peer("", "a", "127.0.0.1", "--origin", "http://127.0.0.1", "--store", disk+"/store", "--store-size", "30MiB",
			"--memory-size", "4MiB")
		get := func(from, to int) {
			for i := from; i < to; i++ {
				p, want := body(i)
				s.gets(a, p, 200, want)
			}
		}
		get(0, 40)
		other := exec.Command("dd", "if=/dev/zero", "of="+disk+"/other", "bs=64k", "status=none") // until the disk is full
		if out, err := other.CombinedOutput(); err == nil || !strings.Contains(string(out), "No space") {
			s.Fatalf("the disk is not full: %v %s", err, out)
		}
		get(0, 40)
		get(100, 160)
		var told string
		eventually(s.T, time.Minute, "the operator is told", func() bool {
			get(200, 201)
			told = fmt.Sprint(a.status().Health.Degraded)
			return strings.Contains(told, "store")
		})
		s.Logf("while the disk is full: %s", told)
		if err := os.Remove(disk + "/other"); err != nil {
			s.Fatal(err)
		}
		last := 300
		took := eventually(s.T, 90*time.Second, "it stores again", func() bool {
			last++
			p, want := body(last)
			s.gets(a, p, 200, want)
			n := o.count(p)
			s.gets(a, p, 200, want)
			return o.count(p) == n
		})
		eventually(s.T, 2*time.Minute, "it is well",
			func() bool { return !strings.Contains(fmt.Sprint(a.status().Health.Degraded), "store") })
		get(400, 480)
		if st := a.status().Store; st.Bytes < 20<<20 {
			s.Errorf("of its 30 MiB it uses %d bytes, although there is room again", st.Bytes)
		}
		if n := a.status().Store.Corrupt; n > 0 {
			s.Errorf("%d objects are corrupt", n)
		}
		s.Logf("with room again: it stores after %v; %d requests at the origin; %+v", took.Round(100*time.Millisecond),
			o.count(""), a.status().Store)
		if code := a.stop(); code != 0 {
			s.Errorf("it ended with %d", code)
		}
	})
}

// jump has the clock of a running process differ from the machine's by so many seconds. Go's programs, and most
// others, read it from the page of the kernel's code that they have, of which each process has a copy when it is
// written to: there a call of the kernel takes the place of the function, and an addition.
func (s *street) jump(p *process, seconds int32) {
	s.Helper()
	pid := p.cmd.Process.Pid
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		s.Fatal(err)
	}
	at := regexp.MustCompile(`(?m)^([0-9a-f]+)-([0-9a-f]+) .*\[vdso\]$`).FindSubmatch(maps)
	if at == nil {
		s.Skip("no vDSO")
	}
	first, _ := strconv.ParseInt(string(at[1]), 16, 64)
	end, _ := strconv.ParseInt(string(at[2]), 16, 64)
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		s.Fatal(err)
	}
	defer mem.Close()
	image := make([]byte, end-first)
	if _, err := mem.ReadAt(image, first); err != nil {
		s.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		s.Fatal(err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		s.Fatal(err)
	}
	code := []byte{0xb8, 228, 0, 0, 0, 0x0f, 0x05, // clock_gettime
		0x85, 0xff, 0x75, 0x07, // but CLOCK_REALTIME, nothing more
		0x48, 0x81, 0x06} // add to the seconds
	code = append(binary.LittleEndian.AppendUint32(code, uint32(seconds)), 0xc3)
	for _, symbol := range symbols {
		if symbol.Name != "__vdso_clock_gettime" {
			continue
		}
		p.cmd.Process.Signal(syscall.SIGSTOP) // nobody is within the function, with luck
		_, err := mem.WriteAt(code, first+int64(symbol.Value))
		p.cmd.Process.Signal(syscall.SIGCONT)
		if err != nil {
			s.Fatal(err)
		}
		return
	}
	s.Skip("the vDSO has no clock_gettime")
}

// The clock of a peer, then that of an origin, jumps a day ahead, and back. Nobody is given what is older than its
// lifetime, what is stored at the others is used on, and a jump costs no more than what it makes look old.
func TestStreetClocks(t *testing.T) {
	onTheStreet(t, func(s *street) {
		if runtime.GOARCH != "amd64" {
			s.Skip("knows the processor amd64")
		}
		const day = 24 * 3600
		var version atomic.Int64
		o := s.origin("127.0.0.1:80", func(r *http.Request) string {
			return fmt.Sprintf("%s version %d", r.URL.Path, version.Load())
		})
		a := s.peer("", "a", "127.0.0.1", "--origin", "http://127.0.0.1")
		b := s.peer("", "b", "127.0.0.1", "--origin", "http://127.0.0.1", "--join", a.gossip)
		now := func(p *process) time.Duration { return time.Until(p.status().Now).Round(time.Hour) }
		for i := range 10 {
			s.gets(a, fmt.Sprintf("/%d", i), 200, fmt.Sprintf("/%d version 0", i))
			s.gets(a, fmt.Sprintf("/brief%d?cc=max-age=3", i), 200, fmt.Sprintf("/brief%d version 0", i))
		}
		eventually(s.T, time.Minute, "b knows what a holds", func() bool {
			m, _ := b.member("a")
			return m.Current && m.Keys >= 20
		})

		s.jump(a, day) // its own objects look a day old
		if d := now(a); d != 24*time.Hour {
			s.Fatalf("a's clock has moved by %v", d)
		}
		for i := range 10 {
			s.gets(b, fmt.Sprintf("/%d", i), 200, fmt.Sprintf("/%d version 0", i))
			s.gets(a, fmt.Sprintf("/%d", i), 200, fmt.Sprintf("/%d version 0", i))
			s.gets(a, fmt.Sprintf("/ahead%d", i), 200, fmt.Sprintf("/ahead%d version 0", i))
		}
		before := o.count("")
		// by RFC 9111 section 4.2.3 what has a Date of yesterday is old: it is validated, and nothing worse
		for i := range 10 {
			h := s.gets(a, fmt.Sprintf("/ahead%d", i), 200, fmt.Sprintf("/ahead%d version 0", i))
			if how := h.Get("Cache-Status"); !strings.Contains(how, "fwd=stale; fwd-status=304") {
				s.Errorf("a day ahead: %s", how)
			}
		}
		if n := o.count("") - before; n != 10 {
			s.Errorf("a day ahead: the origin was asked %d times for 10", n)
		}
		version.Store(1)
		time.Sleep(3100 * time.Millisecond)
		s.jump(a, 0) // back: what was stored a day ahead is from the future
		for i := range 10 {
			s.gets(a, fmt.Sprintf("/brief%d?cc=max-age=3", i), 200, fmt.Sprintf("/brief%d version 1", i))
			s.gets(b, fmt.Sprintf("/brief%d?cc=max-age=3", i), 200, fmt.Sprintf("/brief%d version 1", i))
			s.gets(a, fmt.Sprintf("/behind%d?cc=max-age=2", i), 200, fmt.Sprintf("/behind%d version 1", i))
		}
		s.jump(a, -day) // its lifetimes must not last a day longer
		version.Store(2)
		time.Sleep(3100 * time.Millisecond)
		for i := range 10 {
			s.gets(a, fmt.Sprintf("/behind%d?cc=max-age=2", i), 200, fmt.Sprintf("/behind%d version 2", i))
			s.gets(b, fmt.Sprintf("/behind%d?cc=max-age=2", i), 200, fmt.Sprintf("/behind%d version 2", i))
			s.gets(a, fmt.Sprintf("/brief%d?cc=max-age=3", i), 200, fmt.Sprintf("/brief%d version 2", i))
		}
		s.jump(a, 0)
		eventually(s.T, time.Minute, "both are here", func() bool {
			m, _ := a.member("b")
			k, _ := b.member("a")
			return m.State == "alive" && k.State == "alive" && m.Current && k.Current
		})

		// An nginx a day ahead, then a day behind.
		for i, by := range []string{"+1d", "-1d"} {
			addr := fmt.Sprint("127.0.0.1:808", i)
			s.file("clock/www/page", "page")
			s.nginx(fmt.Sprint("clock", i), addr,
				"server { listen "+addr+"; root /run/street/clock/www; location / { expires 60s; } }", "LD_PRELOAD="+fakeTime(s.T), "FAKETIME="+by)
			c := s.peer("", fmt.Sprint("c", i), "127.0.0.1", "--origin", "http://"+addr)
			log := fmt.Sprintf("/run/street/clock%d/access.log", i)
			for range 5 {
				h := s.gets(c, "/page", 200, "page")
				c.stored(s.T, 1) // before the next one comes
				if by == "-1d" && strings.Contains(h.Get("Cache-Status"), "hit") {
					s.Errorf("an origin a day behind: %v", h)
				}
			}
			want := map[string]int{"+1d": 1, "-1d": 5}[by]
			if n := s.lines(log, "/page"); n != want || s.lines(log, "/page 304") != want-1 {
				s.Errorf("an origin %s was asked %d times, want %d, and %d answers 304", by, n, want, want-1)
			}
			const ahead = "this machine's clock is ahead of an origin's"
			if said := strings.Contains(c.stderr.String(), ahead); said != (by == "-1d") {
				s.Errorf("an origin %s: its clock is told of: %v", by, said)
			}
			c.quiet(ahead)
		}
	})
}
