package digest

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var python = flag.Bool("python", false, "fail if there is no Python 3 to run the second reader by")

// A reader in another language, written from the two documents and not from this
// package, agrees with every vector; and it does look.
func TestAnotherReaderAgrees(t *testing.T) {
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		if *python {
			t.Fatal(err)
		}
		t.Skip("python3 is not here, so the second reader is not run")
	}
	run := func(vectors string, frozen ...string) ([]byte, error) {
		cmd := exec.Command(interpreter, append([]string{"testdata/python/vectors.py", vectors}, frozen...)...)
		cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
		return cmd.CombinedOutput()
	}
	frozen, err := filepath.Glob("testdata/frozen/*")
	if err != nil || len(frozen) == 0 {
		t.Fatalf("nothing is frozen: %v", err)
	}
	out, err := run("testdata/vectors.json", frozen...)
	if err != nil || !bytes.HasPrefix(out, []byte("agrees: ")) {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	vectors, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct{ old, new string }{
		{`"Key": "d24ec4f1a98c6e5b"`, `"Key": "d24ec4f1a98c6e5c"`},
		{`"Offset": 24`, `"Offset": 25`},
		{`"State": "`, `"State": "1`},
	} {
		path := filepath.Join(t.TempDir(), "vectors.json")
		altered := bytes.Replace(vectors, []byte(change.old), []byte(change.new), 1)
		if bytes.Equal(altered, vectors) {
			t.Fatalf("the vectors have no %s", change.old)
		}
		if err := os.WriteFile(path, altered, 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := run(path); err == nil {
			t.Errorf("%s in place of %s: %s", change.new, change.old, out)
		}
	}
}
