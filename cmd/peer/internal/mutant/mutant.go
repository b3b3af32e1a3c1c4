// Package mutant puts faults back into the code, for tests that must find them.
//
// A fault is a list of edits of source files. [Build] compiles the tests of a package with the edited
// files in place of the originals, which are not changed.
package mutant

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// An Edit replaces a text that occurs once in a file: the path of the file from the module's root, the
// text, and what replaces it.
type Edit [3]string

// Check reports which edits do not fit the files below root, each by itself.
func Check(root string, edits []Edit) error {
	var errs []error
	for _, e := range edits {
		text, err := os.ReadFile(filepath.Join(root, e[0]))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if n := strings.Count(string(text), e[1]); n != 1 || e[1] == e[2] {
			errs = append(errs, fmt.Errorf("%s has %d times %q, want once", e[0], n, e[1]))
		}
	}
	return errors.Join(errs...)
}

// Build compiles the tests of the package in the working directory with the edits made in turn to the
// files below root. It writes to dir and returns the path of the test binary there.
func Build(dir, root string, edits []Edit) (binary string, err error) {
	replaced := map[string]string{}
	for i, e := range edits {
		path, err := filepath.Abs(filepath.Join(root, e[0]))
		if err != nil {
			return "", err
		}
		from := path
		if replaced[path] != "" {
			from = replaced[path]
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(text), e[1]); n != 1 {
			return "", fmt.Errorf("%s has %d times %q, want once", e[0], n, e[1])
		}
		replaced[path] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replaced[path], []byte(strings.Replace(string(text), e[1], e[2], 1)), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "mutant")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("the mutant does not compile: %w\n%s", err, out)
	}
	return binary, nil
}
