package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A tab is a tab of a real browser, driven by the DevTools protocol over a pipe.
type tab struct {
	t       *testing.T
	in      io.Writer
	out     *bufio.Reader
	session string
	last    int
}

func openTab(t *testing.T, browser, url string) *tab {
	t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--no-proxy-server", "--user-data-dir="+profile(t), "--remote-debugging-pipe", "--window-size=1280,900")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &tab{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		io.WriteString(in, `{"id": 0, "method": "Browser.close"}`+"\x00")
		in.Close()
		io.Copy(io.Discard, out)
		out.Close()
		cmd.Wait()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": url}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	return b
}

// call waits for the result of a command, and ignores the browser's other messages.
func (b *tab) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.last++
	command := map[string]any{"id": b.last, "method": method}
	if params != nil {
		command["params"] = params
	}
	if b.session != "" {
		command["sessionId"] = b.session
	}
	text, err := json.Marshal(command)
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	for err == nil {
		var line []byte
		if line, err = b.out.ReadBytes(0); err != nil {
			break
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err = json.Unmarshal(line[:len(line)-1], &answer); err != nil || answer.ID != b.last {
			continue
		}
		if answer.Error != nil {
			b.t.Fatalf("%s: %s", method, answer.Error.Message)
		}
		if result != nil {
			err = json.Unmarshal(answer.Result, result)
		}
		if err == nil {
			return
		}
	}
	b.t.Fatalf("%s: %v", method, err)
}

// eval returns the value of an expression on the page, as text.
func (b *tab) eval(expression string) string {
	b.t.Helper()
	var is struct{ Result struct{ Value any } }
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &is)
	return fmt.Sprint(is.Result.Value)
}

// press presses and releases a key.
func (b *tab) press(key string) {
	b.t.Helper()
	code, text := map[string]int{"Tab": 9, "Enter": 13, " ": 32}[key], ""
	switch key {
	case "Enter":
		text = "\r"
	case "Tab":
	default:
		text = key
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text}, nil)
	}
}

// tabTo presses Tab until the element with a selector and a text has the focus, and checks that the
// focus is visible.
func (b *tab) tabTo(what, expression string) {
	b.t.Helper()
	for range 60 {
		b.press("Tab")
		if b.eval(expression) == "true" {
			if b.eval(`getComputedStyle(document.activeElement).outlineStyle`) == "none" {
				b.t.Errorf("nothing shows that %s has the focus", what)
			}
			return
		}
	}
	b.t.Fatalf("Tab does not reach %s; the focus is on %s", what, b.eval(`document.activeElement.outerHTML`))
}

// TestStatusPageByKeyboard finds an object and purges it with the keyboard only.
func TestStatusPageByKeyboard(t *testing.T) {
	chromium := browser(t)
	s := newSite(t, 10, 1000)
	a, _ := pair(t, s)
	s.fill(t, a.listen, 0, 10)
	link := words(t, 0, "open", "--admin", a.admin)
	b := openTab(t, chromium, link)
	shows := func(what, expression string) {
		t.Helper()
		eventually(t, 20*time.Second, what, func() bool { return b.eval(expression) == "true" })
	}
	shows("the page has its data", `document.documentElement.dataset.shown === "yes"`)
	shows("that the token left the address", `location.hash === "" && sessionStorage.token.length > 20`)
	b.tabTo("the search", `document.activeElement.id === "url"`)
	for _, key := range object(7) {
		b.press(string(key))
	}
	b.press("Enter")
	shows("what is known of the object", `!document.getElementById("orders").hidden`)
	b.tabTo("the order", `document.activeElement.innerText === "purge everywhere"`)
	before := s.Requests()
	b.press("Enter")
	shows("that it was purged", `document.getElementById("done").textContent === "removed 1 here, told 1 others"`)
	s.fill(t, a.listen, 7, 8)
	if got := s.Requests() - before; got != 1 {
		t.Errorf("the origin got %d requests after the purge, want once", got)
	}
}
