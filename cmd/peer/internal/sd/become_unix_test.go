//go:build unix

package sd

import (
	"net"
	"os"
	"testing"
)

// TestKeep: what is kept is the socket, after its listener has closed too, and a listener without one is an error.
func TestKeep(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Keep("listen", "127.0.0.1:0", l)
	if err != nil || s.Name != "listen" || s.Addr != "127.0.0.1:0" {
		t.Fatalf("Keep() = %+v, %v", s, err)
	}
	l.Close()
	f := os.NewFile(uintptr(s.descriptor), s.Name)
	defer f.Close()
	again, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Addr().String() != l.Addr().String() {
		t.Errorf("the socket that was kept listens at %v, want %v", again.Addr(), l.Addr())
	}
	for name, bad := range map[string]net.Listener{"no socket": struct{ net.Listener }{l}, "closed": l} {
		if s, err := Keep("listen", "", bad); err == nil {
			t.Errorf("%s: Keep() = %+v, want an error", name, s)
		}
	}
}
