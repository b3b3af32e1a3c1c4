package conn

import (
	"bytes"
	"testing"
	"time"
)

// TestHeadersHaveABudget: connections that send long headers get what there is for all, and
// then no more; what they had comes back when they are idle, or closed.
func TestHeadersHaveABudget(t *testing.T) {
	g := NewGate(Limits{Conns: 4})
	all, one := int64(4*headerShare), bytes.Repeat([]byte{'x'}, headerShare/perByte)
	conns := make([]*Conn, 4)
	for i := range conns {
		conns[i] = Patient(&from{addr: "10.0.0.1:1"}, 0)
		if !g.admit(conns[i], time.Now()) {
			t.Fatal("not admitted")
		}
	}
	for range 4 {
		if !g.keep(conns[0], one) {
			t.Fatalf("refused at %d of %d", g.headers, all)
		}
	}
	if g.keep(conns[0], one) {
		t.Error("more than there is for all")
	}
	for _, c := range conns[1:] {
		if !g.keep(c, one) {
			t.Error("another did not get its share")
		}
		if g.keep(c, one[:1]) {
			t.Error("another got more than its share while there was no more")
		}
	}
	Idle(conns[1], false)
	Idle(conns[1], true)
	conns[0].Close()
	conns[2].Close()
	if got := g.headers; got != conns[3].pass.header || got < headerShare {
		t.Errorf("%d bytes are counted, one connection has a header", got)
	}
	if !g.keep(conns[1], one) {
		t.Error("refused although there is room again")
	}
	if many := bytes.Repeat([]byte("a:\r\n"), 100); !g.keep(conns[1], many) || conns[1].pass.header < 100*perField {
		t.Errorf("100 fields count as %d bytes", conns[1].pass.header)
	}
}
