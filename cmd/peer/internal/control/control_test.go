package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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
	b := New("b", keys)
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
		"no secret":         {secrets(), "b", "double", 0, ErrNoSecret, ""},
		"for another peer":  {secrets("new"), "c", "double", 0, ErrRefused, ""},
		"unknown operation": {secrets("new"), "b", "halve", 0, nil, "a asks for what is not known here"},
	} {
		var got int
		err := New("a", c.keys).Call(t.Context(), http.DefaultTransport, c.peer, addr, c.operation, 7, &got)
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

// Whoever is refused for its clock is told so.
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

// A request that was overheard does nothing a second time, nor later, nor changed.
func TestAccept(t *testing.T) {
	b := New("b", secrets("s"))
	key := deriveKey([]byte("s"))
	now := time.Unix(1_000_000, 0)
	m := message{from: "a", to: "b", operation: "purge", nonce: strings.Repeat("1", 32), at: now, body: []byte("x")}
	for name, c := range map[string]struct {
		header, body string
		at           time.Time
		want         bool
	}{
		"too late":     {m.header(key), "x", now.Add(Window + time.Second), false},
		"too early":    {m.header(key), "x", now.Add(-Window - time.Second), false},
		"other body":   {m.header(key), "y", now, false},
		"other verb":   {strings.Replace(m.header(key), "purge", "status", 1), "x", now, false},
		"other sender": {strings.Replace(m.header(key), " a ", " c ", 1), "x", now, false},
		"no mac":       {strings.TrimRight(m.header(key), "0123456789abcdef"), "x", now, false},
		"empty":        {"", "x", now, false},
		"bad time":     {strings.Replace(m.header(key), "1000000", "x", 1), "x", now, false},
	} {
		if _, _, ok := b.accept(c.header, []byte(c.body), c.at); ok != c.want {
			t.Errorf("%s: accepted: %v", name, ok)
		}
	}
	if _, _, ok := b.accept(m.header(key), m.body, now); !ok {
		t.Error("a good request is refused")
	}
	if _, _, ok := b.accept(m.header(key), m.body, now); ok {
		t.Error("a request is taken twice")
	}
}

func TestNoncesAreBounded(t *testing.T) {
	b := New("b", secrets("s"))
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
