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
	"time"
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

// Closing a log whose reader has stopped takes a second.
func TestPipeThatIsNotRead(t *testing.T) {
	r, w := io.Pipe()
	defer r.Close()
	var said strings.Builder
	l, err := Open("-", false, w, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l.Observe(event())
	begun := time.Now()
	if err := l.Close(); err != nil || time.Since(begun) > 10*closeWait || !strings.Contains(said.String(), "writing them hangs") {
		t.Errorf("Close took %v: %v, and said %q", time.Since(begun), err, said.String())
	}
}

// A pipe whose reader has stopped does not keep the log from being opened again.
func TestReopenBehindAStalledPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l, err := Open(path, false, io.Discard, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 { // more than a pipe holds
		l.Observe(event())
	}
	done := make(chan error, 1)
	go func() { done <- l.Reopen() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Reopen hangs")
	}
	l.Close()
}
