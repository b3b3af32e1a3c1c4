package lab

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	for _, text := range []string{"one", "another"} {
		if err := WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("writeFile(%q) leaves %q, %v", text, got, err)
		}
	}
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("writeFile leaves %v", files)
	}
	if err := WriteFile(filepath.Join(path, "b"), nil); err == nil {
		t.Error("writeFile below a file succeeds")
	}
}
