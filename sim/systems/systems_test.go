package systems

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSystemsRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, []byte("0 - a 1\n0 - b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{path}, 1, path + ":2: 3 fields"},
		{[]string{path, path}, 2, "want one TRACE"},
		{[]string{path + "x"}, 1, "no such file"},
		{[]string{path, "--caches", "1"}, 2, "caches: 1: want 2 to 64"},
		{[]string{path, "--capacity", "0"}, 2, "capacity: 0: want"},
		{[]string{path, "--capacity", "NaN"}, 2, "capacity: NaN: want"},
	} {
		code, out, errs := call(t, append([]string{"systems"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("systems %q = %d, prints %q and says %q; want %d and %q", c.args, code, out, errs, c.code, c.says)
		}
	}
	if err := os.WriteFile(path, []byte("7 - a 1\n8 - b 1\n9 - a 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := call(t, "systems", path); code != 0 || !strings.Contains(out, "The trace has no times") {
		t.Errorf("systems of a trace that numbers its requests = %d, %q", code, out)
	}
}
