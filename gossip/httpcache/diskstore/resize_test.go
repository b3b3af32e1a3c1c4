package diskstore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

func TestResize(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), MaxBytes: 8 << 20})
	body := make([]byte, 60<<10)
	for i := range 100 {
		put(t, s, fmt.Sprint(i), body, bodies.Meta{})
	}
	if err := s.Resize(4 << 20); err != nil {
		t.Fatal(err)
	}
	s.index.CleanUp()
	if st := s.Stats(); st.MaxBytes != 4<<20 || st.Bytes > 4<<20 || st.Objects < 50 {
		t.Errorf("after shrinking: %+v", st)
	}
	if _, err := s.Create("large", 1<<20+1); !errors.Is(err, bodies.ErrTooLarge) {
		t.Errorf("Create of more than a quarter = %v", err)
	}
	if err := s.Resize(64 << 20); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		put(t, s, fmt.Sprint("more", i), body, bodies.Meta{})
	}
	s.index.CleanUp()
	if st := s.Stats(); st.Objects < 250 {
		t.Errorf("after growing: %+v", st)
	}
	if err := s.Resize(1); err == nil || s.Stats().MaxBytes != 64<<20 {
		t.Errorf("Resize to 1 byte = %v", err)
	}
}
