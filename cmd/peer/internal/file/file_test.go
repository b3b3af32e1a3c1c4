package file

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestText: what an editor or a shell put before the text is no part of it, or is an error that says what to do.
func TestText(t *testing.T) {
	for text, want := range map[string]string{"\ufefftext": "text", "text": "text", "": "", "te\ufeffxt": "te\ufeffxt", "\xff\xfet\x00": "UTF-16", "\xfe\xff\x00t": "UTF-16"} {
		path := filepath.Join(t.TempDir(), "text")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Text(path, 100)
		if want == "UTF-16" && (err == nil || !strings.Contains(err.Error(), want)) || want != "UTF-16" && (err != nil || string(got) != want) {
			t.Errorf("Text(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestRead: a file is read up to the bound, and whatever is wrong is said with its path.
func TestRead(t *testing.T) {
	const most = 100
	dir := t.TempDir()
	for name, size := range map[string]int{"empty": 0, "full": most, "longer": most + 1, "much longer": 100_000} {
		path := filepath.Join(dir, name)
		want := bytes.Repeat([]byte("x"), size)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path, most)
		if size <= most {
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: Read() = %d bytes, %v, want %d", name, len(got), err, size)
			}
			continue
		}
		var at *fs.PathError
		if !errors.As(err, &at) || at.Path != path || at.Err == nil || !strings.Contains(err.Error(), "more than 100 bytes") {
			t.Errorf("%s: Read() = %d bytes, %v, want an error with the path and the bound", name, len(got), err)
		}
	}
	if _, err := Read(filepath.Join(dir, "none"), most); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: Read() = %v, want that it does not exist", err)
	}
	if _, err := Read(dir, most); err == nil {
		t.Error("a directory was read")
	}
}
