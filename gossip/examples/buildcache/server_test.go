package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func sumOf(body string) sum { return sha256.Sum256([]byte(body)) }

// What is put at one machine is found at it and at another: by the action, by its sum, of any size.
func TestPutAndGet(t *testing.T) {
	a := start(t, "a", nil)
	b := start(t, "b", nil, a)
	for _, body := range []string{"", "short", strings.Repeat("0123456789abcdef", 300_000)} {
		action := "/ac/" + sumOf("the action of "+body).String()
		if status, got := ask(t, a, "PUT", action, body); status != http.StatusCreated {
			t.Fatalf("PUT: %d %s", status, got)
		}
		content := "/cas/" + sumOf(body).String()
		has(t, a, action, body)
		has(t, a, content, body)
		advertised(t, b, "ac+"+strings.ReplaceAll(action, "/", "%2F"))
		advertised(t, b, "cas+"+sumOf(body).String())
		has(t, b, action, body)
		has(t, b, content, body)
	}
	lacks(t, b, "/ac/nobody")
	lacks(t, b, "/cas/"+sumOf("nobody's").String())
}

// What a build may get wrong is refused, and says why.
func TestMisuse(t *testing.T) {
	dir := t.TempDir()
	m := start(t, "a", func(o *Options) { o.Size, o.Dir = 8, dir })
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"PUT", "/cas/" + sumOf("x").String(), "y", 400, sumOf("y").String()},
		{"PUT", "/cas/abc", "y", 400, "64 hexadecimal digits"},
		{"GET", "/cas/" + strings.ToUpper(sumOf("x").String()), "", 400, "lower case"},
		{"POST", "/x", "y", 405, "GET, HEAD and PUT"},
		{"DELETE", "/x", "", 405, "GET, HEAD and PUT"},
		{"GET", "/", "", 400, "path names the action"},
		{"PUT", "/" + strings.Repeat("x", 2000), "y", 400, "path names the action"},
		{"PUT", "/large", strings.Repeat("x", 2<<20+1), 413, "2097152 bytes"},
	} {
		if status, got := ask(t, m, c.method, c.path, c.body); status != c.status || !strings.Contains(got, c.says) {
			t.Errorf("%s %.80s: %d %q, want %d and %q", c.method, c.path, status, got, c.status, c.says)
		}
	}
	left, err := os.ReadDir(dir)
	for _, f := range left {
		if err != nil || strings.HasPrefix(f.Name(), "put-") {
			t.Errorf("%s is left behind", f.Name())
		}
	}
}

// A member that lies: nothing of an output with other bytes is used, nor an entry that its key has not signed. What the
// build then makes itself is used.
func TestLiar(t *testing.T) {
	right, wrong, action := "the right output", "another output", "/ac/"+sumOf("an action").String()
	honest := start(t, "honest", nil)
	other := start(t, "other", nil, honest)
	put := func(name, value string) {
		if err := other.cache.Put(t.Context(), name, strings.NewReader(value)); err != nil {
			t.Fatal(err)
		}
		advertised(t, honest, strings.ReplaceAll(strings.ReplaceAll(name, "/", "%2F"), " ", "+"))
	}
	strangers, err := KeyOf([]byte("not the secret of this cluster"))
	if err != nil {
		t.Fatal(err)
	}
	put(actionName(action), strangers.seal(action, entry{sumOf(wrong), int64(len(wrong)), time.Now()}))
	lacks(t, honest, action)
	put(outputName(sumOf(right)), wrong)
	content := "/cas/" + sumOf(right).String()
	if status, _ := ask(t, honest, "GET", content, ""); status != 404 {
		t.Errorf("an output of other bytes: %d", status)
	}
	large := strings.Repeat("large ", 100_000)
	put(outputName(sumOf(large)), strings.Repeat("LARGE ", 100_000))
	if status, got := ask(t, honest, "GET", "/cas/"+sumOf(large).String(), ""); status != -1 || len(got) >= len(large) {
		t.Errorf("a large one: %d, %d bytes, want an end before the end", status, len(got))
	}
	for _, p := range []string{action, content} {
		if status, got := ask(t, honest, "PUT", p, right); status != http.StatusCreated {
			t.Errorf("PUT %s: %d %s", p, status, got)
		}
		has(t, honest, p, right)
	}
}

// An entry is that of one action, one key and these fields.
func TestEntry(t *testing.T) {
	key, err := KeyOf([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	e := entry{sumOf("x"), 1, time.Unix(1234567890, 0)}
	text := key.seal("/ac/1", e)
	if got, err := key.open("/ac/1", text); err != nil || got != e {
		t.Errorf("open = %+v, %v", got, err)
	}
	if _, err := key.open("/ac/2", text); err == nil {
		t.Error("it is taken for another action")
	}
	others, _ := KeyOf([]byte(secret + "!"))
	if _, err := others.open("/ac/1", text); err == nil {
		t.Error("another key's is believed")
	}
	for i := range len(text) {
		for _, c := range []byte(" 0aZ") {
			if c != text[i] {
				if got, err := key.open("/ac/1", text[:i]+string(c)+text[i+1:]); err == nil && got != e {
					t.Errorf("byte %d is %q: %+v", i, c, got)
				}
			}
		}
		if _, err := key.open("/ac/1", text[:i]); err == nil {
			t.Errorf("cut at %d it is believed", i)
		}
	}
}

// Nothing of the last 64 KiB is written unless the sum is right.
func TestCopyChecked(t *testing.T) {
	for _, n := range []int{0, 1, inMemory - 1, inMemory, inMemory + 1, 3 * inMemory} {
		body := strings.Repeat("x", n)
		for _, r := range []io.Reader{strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body)), iotest.DataErrReader(strings.NewReader(body))} {
			var out bytes.Buffer
			if _, err := copyChecked(&out, r, sumOf(body)); err != nil || out.String() != body {
				t.Errorf("%d bytes: %v, %d bytes", n, err, out.Len())
			}
		}
		var out bytes.Buffer
		if _, err := copyChecked(&out, strings.NewReader(body), sumOf("other")); err != errOther || out.Len() > max(0, n-1)/inMemory*inMemory {
			t.Errorf("%d other bytes: %v, %d bytes", n, err, out.Len())
		}
		out.Reset()
		broken := io.MultiReader(strings.NewReader(body), iotest.ErrReader(io.ErrClosedPipe))
		if _, err := copyChecked(&out, broken, sumOf(body)); err != io.ErrClosedPipe {
			t.Errorf("%d bytes that break off: %v", n, err)
		}
	}
}

// Flags that a user gets wrong are named.
func TestFlags(t *testing.T) {
	right := []string{"serve", "--listen", "127.0.0.1:0", "--gossip-port", "0", "--service-port", "0", "--dir", t.TempDir()}
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "serve or go"},
		{[]string{"build"}, `unknown command "build"`},
		{right, "--address"},
		{append(right, "--address", "here"), `"here" is no IP address`},
		{append(right, "--address", "127.0.0.1"), "--secret-file is needed"},
		{append(right, "--address", "127.0.0.1", "--secret-file", file(t, "short")), "has 5 bytes"},
		{append(right, "--address", "127.0.0.1", "--secret-file", file(t, secret), "--size", "1"), "8 MiB"},
		{append(right, "x"), `unexpected "x"`},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := run(ctx, c.args); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.args, err, c.says)
		}
		cancel()
	}
}

// The go command's messages are answered, and without a server all are misses.
func TestGoWithoutServer(t *testing.T) {
	g := &Go{Server: "http://127.0.0.1:1", Dir: t.TempDir()}
	of := sumOf("output")
	in := `{"ID":1,"Command":"get","ActionID":"AQI="}` + "\n" +
		`{"ID":2,"Command":"put","ActionID":"AQI=","OutputID":"` + base64.StdEncoding.EncodeToString(of[:]) + `","BodySize":6}` + "\n" + `"b3V0cHV0"` + "\n" +
		`{"ID":3,"Command":"put","ActionID":"AQI=","OutputID":"AQI=","BodySize":6}` + "\n" + `"b3V0cHV0"` + "\n" +
		`{"ID":4,"Command":"close"}` + "\n"
	var out bytes.Buffer
	if err := g.Serve(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"KnownCommands":["get","put","close"]`, `{"ID":1,"Miss":true}`, `{"ID":2,"DiskPath":"` + g.Dir, `{"ID":3,"Err":"the output`, `{"ID":4}`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
	if b, err := os.ReadFile(g.Dir + "/" + of.String()); err != nil || string(b) != "output" {
		t.Errorf("the file has %q, %v", b, err)
	}
	if err := g.Serve(t.Context(), strings.NewReader(`{"ID":1,`), io.Discard); err == nil {
		t.Error("a message that breaks off is no error")
	}
}

// Files that no build has used for days go.
func TestPrune(t *testing.T) {
	g := &Go{Dir: t.TempDir()}
	old, used := g.Dir+"/old", g.Dir+"/used"
	for _, name := range []string{old, used} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	os.Chtimes(old, time.Time{}, time.Now().Add(-unused-time.Hour))
	g.prune()
	if _, err := os.Stat(old); err == nil {
		t.Error("an old file stays")
	}
	if _, err := os.Stat(used); err != nil {
		t.Error(err)
	}
}
