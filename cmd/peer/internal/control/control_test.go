package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

func secrets(s ...string) func() [][]byte {
	return func() (b [][]byte) {
		for _, x := range s {
			b = append(b, []byte(x))
		}
		return b
	}
}

// listen starts a peer "b" whose one operation, "double", doubles a number.
func listen(t *testing.T, keys func() [][]byte) (addr string) {
	t.Helper()
	b := New("b", keys, fromA)
	do := func(_ context.Context, from, operation string, body []byte) (any, error) {
		var n int
		if err := json.Unmarshal(body, &n); err != nil || operation != "double" {
			return nil, errors.New(from + " asks for what is not known here")
		}
		return 2 * n, nil
	}
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "next") })
	server := httptest.NewServer(b.Handler(do, next))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestCall(t *testing.T) {
	addr := listen(t, secrets("new", "old"))
	for name, c := range map[string]struct {
		keys            func() [][]byte
		peer, operation string
		want            int
		refused         error
		words           string
	}{
		"same secret":       {secrets("new"), "b", "double", 14, nil, ""},
		"former secret":     {secrets("old"), "b", "double", 14, nil, ""},
		"other secret":      {secrets("other"), "b", "double", 0, ErrRefused, ""},
		"no secret":         {secrets(), "b", "double", 0, ErrRefused, ""},
		"for another peer":  {secrets("new"), "c", "double", 0, ErrRefused, ""},
		"unknown operation": {secrets("new"), "b", "halve", 0, nil, "a asks for what is not known here"},
	} {
		var got int
		err := New("a", c.keys, nil).Call(t.Context(), http.DefaultTransport, c.peer, addr, c.operation, 7, &got)
		switch {
		case c.words != "":
			if err == nil || err.Error() != c.words {
				t.Errorf("%s: Call = %v, want %q", name, err, c.words)
			}
		case !errors.Is(err, c.refused) || got != c.want:
			t.Errorf("%s: Call = %d, %v, want %d, %v", name, got, err, c.want, c.refused)
		}
	}
}

// fromA accepts requests as those of a member if they claim to be from "a".
func fromA(_ *http.Request, member string) error {
	if member != "a" {
		return errors.New("no member")
	}
	return nil
}

// Without a secret, peers answer only members.
func TestWithoutSecret(t *testing.T) {
	addr := listen(t, secrets())
	for from, want := range map[string]error{"a": nil, "stranger": ErrRefused} {
		var got int
		err := New(from, secrets(), nil).Call(t.Context(), http.DefaultTransport, "b", addr, "double", 7, &got)
		if !errors.Is(err, want) || (got == 14) != (want == nil) {
			t.Errorf("Call of %s = %d, %v, want %v", from, got, err, want)
		}
	}
	if err := New("a", secrets("s"), nil).Call(t.Context(), http.DefaultTransport, "b", addr, "double", 7, nil); !errors.Is(err, ErrRefused) {
		t.Errorf("Call with a secret = %v, want %v", err, ErrRefused)
	}
}

// A peer that is refused because of its clock is told the difference.
func TestRefusalTellsOfClocks(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for date, want := range map[string]string{
		"":     "",
		"soon": "",
		now.Add(Window).UTC().Format(http.TimeFormat):     "",
		now.Add(time.Hour).UTC().Format(http.TimeFormat):  "; its clock is ahead of this one by 1h0m0s",
		now.Add(-time.Hour).UTC().Format(http.TimeFormat): "; its clock is behind this one by 1h0m0s",
	} {
		if got := offBy(http.Header{"Date": {date}}, now); got != want {
			t.Errorf("offBy(%q) = %q, want %q", date, got, want)
		}
	}
}

// A recorded request has no effect if it is sent again, late or changed.
func TestAccept(t *testing.T) {
	b := New("b", secrets("s"), nil)
	key := deriveKey([]byte("s"))
	now := time.Unix(1_000_000, 0)
	m := message{from: "a", to: "b", operation: "purge", nonce: strings.Repeat("1", 32), at: now, body: hashOf([]byte("x"))}
	for name, c := range map[string]struct {
		header string
		at     time.Time
	}{
		"too late":     {m.header(key), now.Add(Window + time.Second)},
		"too early":    {m.header(key), now.Add(-Window - time.Second)},
		"other body":   {strings.Replace(m.header(key), m.body, hashOf([]byte("y")), 1), now},
		"other verb":   {strings.Replace(m.header(key), "purge", "status", 1), now},
		"other sender": {strings.Replace(m.header(key), " a ", " c ", 1), now},
		"no mac":       {strings.TrimRight(m.header(key), "0123456789abcdef"), now},
		"empty":        {"", now},
		"bad time":     {strings.Replace(m.header(key), "1000000", "x", 1), now},
	} {
		if _, _, ok := b.accept(c.header, c.at); ok {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, _, ok := b.accept(m.header(key), now); !ok {
		t.Error("a good request is refused")
	}
	if _, _, ok := b.accept(m.header(key), now); ok {
		t.Error("a request is taken twice")
	}
}

// A body other than the signed one is refused.
func TestOtherBody(t *testing.T) {
	addr := listen(t, secrets("s"))
	m := message{from: "a", to: "b", operation: "double", nonce: strings.Repeat("1", 32), at: time.Now(), body: hashOf([]byte("7"))}
	r, _ := http.NewRequest(http.MethodPost, "http://"+addr+Path, strings.NewReader("8"))
	r.Header.Set(field, m.header(deriveKey([]byte("s"))))
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// Bodies from strangers take no memory, and those from peers a bounded amount: 500 requests with a
// megabyte each once took 590 MB.
func TestFloods(t *testing.T) {
	all := make([]byte, 1<<20)
	for _, member := range []bool{false, true} {
		addr := listen(t, secrets("s"))
		runtime.GC()
		before := inUse()
		for i := range 500 {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			key, size := deriveKey([]byte("guess")), len(all)
			if member {
				key, size = deriveKey([]byte("s")), maxBody
			}
			m := message{from: "a", to: "b", operation: "double", nonce: fmt.Sprintf("%032d", i), at: time.Now(), body: hashOf(nil)}
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: b\r\n%s: %s\r\nContent-Length: %d\r\n\r\n", Path, field, m.header(key), size)
			go c.Write(all[:size-1]) // until it is closed
		}
		most := uint64(0)
		for range 30 {
			time.Sleep(10 * time.Millisecond)
			most = max(most, inUse())
		}
		most -= min(before, most)
		limit := uint64(32 << 20)
		if member {
			limit = 64 << 20
		}
		t.Logf("member %v: %.1f MiB", member, float64(most)/(1<<20))
		if most > limit {
			t.Errorf("member %v: %d MiB", member, most>>20)
		}
	}
}

// inUse returns the bytes that heap and stacks use now, garbage included.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

func TestNoncesAreBounded(t *testing.T) {
	b := New("b", secrets("s"), nil)
	now := time.Unix(1_000_000, 0)
	for i := range maxNonces {
		if !b.first(string(rune(i+1<<17)), now.Add(Window), now) {
			t.Fatalf("request %d is refused", i)
		}
	}
	if b.first("one more", now.Add(Window), now) {
		t.Error("more are remembered than may be")
	}
	if later := now.Add(Window + time.Second); !b.first("one more", later.Add(Window), later) {
		t.Error("the old ones are not forgotten")
	}
}

func TestOthersPass(t *testing.T) {
	addr := listen(t, secrets("s"))
	resp, err := http.Post("http://"+addr+Path, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "next" {
		t.Errorf("a request without the field got %q", body)
	}
}
