package node

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
)

// OPERATING.md lists the settings that a reload does not change, and each is one.
func TestFixedSettings(t *testing.T) {
	page, err := os.ReadFile("../../OPERATING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "names what waits for a restart:")
	list, _, _ = strings.Cut(list, "\n\nOn SIGTERM")
	named := make(map[string]bool)
	for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(list, -1) {
		named[m[1]] = true
	}
	if got, want := slices.Sorted(maps.Keys(named)), slices.Sorted(slices.Values(fixed)); !slices.Equal(got, want) {
		t.Errorf("OPERATING.md lists\n%v, and these are fixed:\n%v", got, want)
	}
	settings := make(map[string]bool)
	for field := range reflect.TypeFor[config.Config]().Fields() {
		settings[field.Tag.Get("name")] = true
	}
	for _, name := range fixed {
		if !settings[name] {
			t.Errorf("%s is no setting", name)
		}
	}
}
