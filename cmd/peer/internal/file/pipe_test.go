//go:build unix

package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReadPipe: of a pipe is read what its writer sends until it closes it. One that nobody writes into is an error.
func TestReadPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no pipes with names here: ", err)
	}
	var at *fs.PathError
	if got, err := Read(path, 100); !errors.As(err, &at) || at.Path != path || !strings.Contains(err.Error(), "nobody writes") {
		t.Errorf("without a writer: Read() = %q, %v, want that nobody writes", got, err)
	}
	for text, want := range map[string]string{"secret": "", strings.Repeat("x", 101): "more than 100 bytes"} {
		w, err := os.OpenFile(path, os.O_RDWR, 0) // which waits for nobody
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if want == "" { // while somebody else has it open for reading, what was written stays
			r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			w.Close()
		}
		got, err := Read(path, 100)
		if want == "" && (err != nil || string(got) != text) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d bytes: Read() = %q, %v, want %q", len(text), got, err, want)
		}
		w.Close()
	}
}
