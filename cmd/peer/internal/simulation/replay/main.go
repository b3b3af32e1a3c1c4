// Command replay runs seeds of the simulation so that each run of a seed is the same, to
// the last line of every peer's log. It compiles the tests to WebAssembly and runs them in one
// thread, with a clock that only counts and with random bytes from the seed.
//
//	go run . -from 17 -seeds 20      # each twice, and compared
//	go run . -from 17 -seeds 1 -full # with the log of all events
//	go run . -schedule FILE          # one that was shrunk
//
// With GOFLAGS=-overlay=FILE and PLANTED=NAME it runs them with a fault: cmd/peer/FAULTS.md says how to get the file.
//
// -order is the seed of the Go runtime's random numbers: another one runs
// the same schedule with another order of goroutines. This is a module of its own, so that
// nothing else depends on wazero. The first build takes a minute.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

func main() {
	from := flag.Uint64("from", 1, "the first seed")
	seeds := flag.Uint64("seeds", 4, "how many seeds")
	order := flag.Uint64("order", 1, "the seed of the Go runtime's random numbers")
	schedule := flag.String("schedule", "", "a `file` with a schedule to run, in place of seeds")
	full := flag.Bool("full", false, "run each seed once, and print the log of events and those of the peers")
	shrink := flag.Int("shrink", 0, "how many runs to spend on finding a smaller schedule for a failure")
	flag.Parse()
	if err := play(*from, *seeds, *order, *schedule, *full, *shrink); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

func play(from, seeds, order uint64, schedule string, full bool, shrink int) error {
	ctx := context.Background()
	h, err := newHost(ctx)
	if err != nil {
		return err
	}
	defer h.close(ctx)
	var text []byte
	if schedule != "" {
		if text, err = os.ReadFile(schedule); err != nil {
			return err
		}
		seeds = 1
	}
	failures := make([]error, seeds)
	busy := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i := range seeds {
		all.Go(func() {
			busy <- struct{}{}
			defer func() { <-busy }()
			args := []string{fmt.Sprintf("-from=%d", from+i), "-seeds=1", fmt.Sprintf("-shrink=%d", shrink)}
			failures[i] = h.twice(ctx, order, full, text, args)
			if failures[i] == nil {
				fmt.Printf("seed %d: passed, twice with the same log\n", from+i)
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

// twice runs a seed two times, and returns how it failed or that the runs differ.
func (h *host) twice(ctx context.Context, order uint64, full bool, schedule []byte, args []string) error {
	all := append([]string{"-full"}, args...)
	first, failed := h.once(ctx, order, schedule, all)
	if full {
		os.Stdout.Write(first)
		return failed
	}
	if second, _ := h.once(ctx, order, schedule, all); !bytes.Equal(first, second) {
		return fmt.Errorf("%s: the logs of two runs differ from line %d of %d on", args[0], differs(first, second),
			bytes.Count(first, []byte("\n")))
	}
	if failed != nil {
		text, _ := h.once(ctx, order, schedule, args)
		return fmt.Errorf("%w, twice with the same log\n%s", failed, text)
	}
	return nil
}

func differs(a, b []byte) int {
	n := 1
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			break
		}
		if a[i] == '\n' {
			n++
		}
	}
	return n
}

// A host runs the simulation's test binary, any number of times at once.
type host struct {
	dir     string
	runtime wazero.Runtime
	binary  wazero.CompiledModule
}

func newHost(ctx context.Context) (h *host, err error) {
	h = &host{}
	if h.dir, err = os.MkdirTemp("", "replay"); err != nil {
		return nil, err
	}
	file := filepath.Join(h.dir, "simulation.wasm")
	if err := build(file, h.dir); err != nil {
		return nil, err
	}
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	h.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithMemoryLimitPages(1<<15))
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, h.runtime); err != nil {
		return nil, err
	}
	h.binary, err = h.runtime.CompileModule(ctx, code)
	return h, err
}

func (h *host) close(ctx context.Context) {
	h.runtime.Close(ctx)
	os.RemoveAll(h.dir)
}

// lacking is a module that memberlist uses. A build line in it lacks wasip1, so build copies the
// module and completes the line. Go refuses an overlay there, and with a replace in the program's
// go.mod others could not install it.
const lacking = "github.com/hashicorp/go-sockaddr"

// build compiles the tests of the simulation, in the directory above, for wasip1.
func build(file, dir string) error {
	var failed error
	run := func(args ...string) string {
		c := exec.Command("go", args...)
		c.Dir, c.Stderr = "..", os.Stderr
		out, err := c.Output()
		if err != nil && failed == nil {
			failed = fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	copied, mod := filepath.Join(dir, "lacking"), filepath.Join(dir, "wasm.mod")
	run("mod", "download", lacking)
	root := filepath.Dir(run("env", "GOMOD"))
	if from := run("list", "-m", "-f", "{{.Dir}}", lacking); failed == nil {
		failed = os.CopyFS(copied, os.DirFS(from))
	}
	if failed != nil {
		return failed
	}
	line := filepath.Join(copied, "route_info_default.go")
	if err := errors.Join(
		edit(line, line, "|| js\n", "|| js || wasip1\n"),
		edit(filepath.Join(root, "go.mod"), mod, "", ""),
		edit(filepath.Join(root, "go.sum"), filepath.Join(dir, "wasm.sum"), "", ""),
	); err != nil {
		return err
	}
	run("mod", "edit", "-replace", lacking+"="+copied, mod)
	os.Setenv("GOOS", "wasip1")
	os.Setenv("GOARCH", "wasm")
	run("test", "-c", "-vet=off", "-modfile", mod, "-o", file, ".")
	return failed
}

// edit copies a file and changes the one place that has old.
func edit(from, to, old, new string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), old) {
		return fmt.Errorf("%s does not say %q", from, old)
	}
	os.Remove(to) // files copied from the module cache are read-only
	return os.WriteFile(to, []byte(strings.Replace(string(text), old, new, 1)), 0o600)
}

// once runs the binary in an instance of its own.
func (h *host) once(ctx context.Context, order uint64, schedule []byte, args []string) ([]byte, error) {
	dir, err := os.MkdirTemp(h.dir, "run") // for this run only, since the random names of files are the same in each
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if schedule != nil {
		if err := os.WriteFile(filepath.Join(dir, "schedule"), schedule, 0o600); err != nil {
			return nil, err
		}
		args = append(args, "-schedule=/tmp/schedule")
	}
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], order)
	var out bytes.Buffer
	var clock int64 // programs wait for the time to pass, so it advances by a microsecond at each call
	tick := func() int64 { clock += 1000; return clock }
	config := wazero.NewModuleConfig().
		WithArgs(append([]string{"simulation", "-test.run=Seeds", "-test.v", "-stuck=1000h"}, args...)...).
		WithEnv("TMPDIR", "/tmp").WithEnv("PLANTED",
		os.Getenv("PLANTED")).WithFSConfig(wazero.NewFSConfig().WithDirMount(dir, "/tmp")).
		WithRandSource(rand.NewChaCha8(seed)).
		WithNanotime(tick, 1).
		WithWalltime(func() (int64, int32) { t := tick(); return 946684800 + t/1e9, int32(t % 1e9) }, 1).
		WithNanosleep(func(ns int64) { clock += ns }).
		WithStdout(&out).WithStderr(&out).WithName("")
	m, err := h.runtime.InstantiateModule(ctx, h.binary, config)
	if m != nil {
		m.Close(ctx)
	}
	var exit *sys.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 0 {
		err = nil
	}
	return out.Bytes(), err
}
