//go:build unix

package accesslog

import (
	"bufio"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe without a reader is refused by name; with one, the log goes through it.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	if _, err := Open(path, false, io.Discard, log); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Open of a pipe that nobody reads = %v", err)
	}
	r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l, err := Open(path, false, io.Discard, log)
	if err != nil {
		t.Fatal(err)
	}
	l.Observe(event())
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if line, err := bufio.NewReader(r).ReadString('\n'); err != nil || !strings.Contains(line, "GET") {
		t.Errorf("the line in the pipe: %q, %v", line, err)
	}
}
