package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The table of CHOOSING.md is what its sentence says.
func TestPagesChoosing(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "gossip", "CHOOSING.md"))
	if err != nil {
		t.Fatal(err)
	}
	change := 28.0/8 + 3.9
	for _, kib := range []int{1, 10, 100} {
		caches := math.Round(1 + (242+float64(kib<<10))/(2*change))
		row := fmt.Sprintf("| %d KiB | %s |", kib, grouped(int(caches)))
		if !strings.Contains(string(text), row) {
			t.Errorf("no row %q", row)
		}
	}
}

func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
