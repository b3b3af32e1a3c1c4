package gossip

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestEmbeddingNamesConfig: below its first program, EMBEDDING.md names every field of Config, and says how many there are.
func TestEmbeddingNamesConfig(t *testing.T) {
	page, err := os.ReadFile("EMBEDDING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "`gossip.Config` has ")
	text, _, _ = strings.Cut(text, "\n## ")
	fields := 0
	for f := range reflect.TypeFor[Config]().Fields() {
		if !f.IsExported() {
			continue
		}
		if !f.Anonymous {
			fields++
		}
		if !strings.Contains(text, "`"+f.Name+"`") {
			t.Errorf("EMBEDDING.md does not name %s below its first program", f.Name)
		}
	}
	if number := [...]string{10: "ten", 11: "eleven", 12: "twelve", 13: "thirteen"}[fields]; !strings.HasPrefix(text, number+" fields") {
		t.Errorf("EMBEDDING.md says %.14q, and Config has %s", text, number)
	}
}
