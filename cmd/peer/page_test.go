package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// browser returns a real Chromium, or skips the test. With SCREENSHOTS in the environment, a directory
// to keep pictures of the status page in, the test fails without one.
func browser(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("looks at a page, for which the race detector finds nothing")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("SCREENSHOTS") != "" {
		t.Fatal("no Chromium is installed here")
	}
	t.Skip("no Chromium is installed here")
	return ""
}

// profile returns a directory for a browser, which is removed when the test has ended. The browser's helpers may still write to it for
// a moment after the browser has ended.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		eventually(t, time.Minute, "the browser's profile is removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	return dir
}

// browse opens a page and returns the browser's output.
func browse(t *testing.T, browser, url string, flags ...string) string {
	t.Helper()
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--no-proxy-server", "--hide-scrollbars", "--user-data-dir=" + profile(t),
		"--virtual-time-budget=3000", "--enable-logging=stderr", "--timeout=30000"}, flags...)
	cmd := exec.CommandContext(t.Context(), browser, append(args, url)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, errs.String())
	}
	for line := range strings.Lines(errs.String()) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the page complains: %s", line)
		}
	}
	return string(out)
}

// shown returns the text of the page.
func shown(dom string) string {
	body := dom[max(0, strings.Index(dom, "<header")):max(0, strings.Index(dom, "<script"))]
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, " ")), " ")
}

func TestStatusPageInChromium(t *testing.T) {
	chromium := browser(t)
	s := newSite(t, 60, 20_000)
	a, b := pair(t, s)
	s.fill(t, b.listen, 0, 40)
	eventually(t, time.Minute, "a knows what b holds", func() bool {
		st, err := admin.Client(a.admin).Status(t.Context())
		return err == nil && st.Members[0].Keys == 40 && st.Members[0].Current
	})
	s.fill(t, a.listen, 0, 60)
	s.fill(t, a.listen, 0, 60)
	page := "http://" + a.admin + "/"
	st, err := admin.Client(a.admin).Status(t.Context())
	if err != nil || st.Members[0].Hits == 0 {
		t.Fatalf("a has nothing of b: %+v, %v", st.Members, err)
	}

	dom := browse(t, chromium, page, "--dump-dom")
	if !strings.Contains(dom, `data-shown="yes"`) {
		t.Fatalf("the page did not get its data:\n%s", dom)
	}
	text := strings.NewReplacer(" a degraded ", " a serving ", " b degraded ", " b serving ").Replace(shown(dom)) // as a busy machine is
	for _, want := range []string{
		"a serving reverse proxy for " + s.url, "gossip encrypted", "requests 120 of clients", "b alive",
		"2,048 planned for", "objects came from a sibling",
		"a serving own 120 ", "b serving current 40 ", "2 of 2",
		fmt.Sprintf("asked by ↓, served by → a b a · %d b 0 ·", st.Members[0].Hits), "−4 min",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not show %q:\n%s", want, text)
		}
	}
	for kind, want := range map[string]int{"f": 11, "line": 5} { // of requests, bodies and messages; of hits and answers, while origins may not be a line yet
		if n := strings.Count(dom, `<path class="`+kind); n < want {
			t.Errorf("%d paths of class %s are drawn, want %d", n, kind, want)
		}
	}

	// Each other peer's name is a link to its page, which keeps the focus when the table is drawn
	// again. Once the page has the history, it asks for what is new.
	asked := make(chan string, 100)
	recorder := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: a.admin}) },
		ModifyResponse: func(r *http.Response) error {
			switch r.Request.URL.Path {
			case "/history.json":
				asked <- fmt.Sprint(r.StatusCode, " ", r.Request.URL.RawQuery)
			case "/":
				r.Header.Del("Content-Security-Policy")
				r.ContentLength = -1
				r.Header.Del("Content-Length")
				r.Body = io.NopCloser(io.MultiReader(r.Body, strings.NewReader(`<script>setTimeout(() => {
					document.querySelector("#cluster a").focus();
					setTimeout(() => document.documentElement.dataset.focused = document.activeElement.href, 6000);
				}, 3000)</script>`)))
			}
			return nil
		}})
	defer recorder.Close()
	dom = browse(t, chromium, recorder.URL+"/", "--dump-dom", "--virtual-time-budget=12000")
	if link := `<a href="//` + b.admin + `/">b</a>`; strings.Count(dom, link) != 1 || strings.Contains(dom, `">a</a>`) ||
		!strings.Contains(dom, `data-focused="http://`+b.admin+`/"`) {
		t.Errorf("want %s once, and focused:\n%s", link, dom)
	}
	recorder.Close()
	close(asked)
	for _, want := range []string{"200 ", "200 since=20"} {
		if got := <-asked; !strings.HasPrefix(got, want) {
			t.Errorf("the page asks for the history: %s, want %s", got, want)
		}
	}

	// What somebody looks for: an object that both have, and one that nobody has.
	for path, wants := range map[string][]string{
		object(7):   {"A hit: the stored response is fresh.", "Held by a (status 200", ") and b (status 200", "in digest a 200", "for this request", "purge everywhere"},
		"/object/*": {"No peer holds it.", "purge what matches, everywhere"},
		"/nowhere":  {"No peer holds it.", "The digests of the others say that they do not have it.", "a, b nothing", "its digest says", "b alive no"},
	} {
		text := shown(browse(t, chromium, page+"?url="+path, "--dump-dom"))
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("the page does not show %q of %s:\n%s", want, path, text)
			}
		}
	}

	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		dir = t.TempDir()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	looksRight(t, openTab(t, chromium, page), filepath.Join(dir, "status"))
	sixty := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: a.admin})
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: multiplied,
	})
	defer sixty.Close()
	crowd := openTab(t, chromium, sixty.URL+"/")
	looksRight(t, crowd, filepath.Join(dir, "sixty"))
	looksAtSixty(t, crowd)
}

// named returns the long name of one of sixty peers.
func named(i int) string {
	return fmt.Sprintf("cache-of-the-shop-in-eu-central-1b-node-%02d.example", i)
}

// multiplied has a peer of two say that it is in a cluster of sixty with long names, of which one is dead and one is alone.
func multiplied(r *http.Response) error {
	change := func(v any, more func()) error {
		if err := json.NewDecoder(r.Body).Decode(v); err != nil {
			return err
		}
		more()
		b, err := json.Marshal(v)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		r.Header.Set("Content-Length", fmt.Sprint(len(b)))
		return err
	}
	switch r.Request.URL.Path {
	case "/cluster.json":
		var c admin.Cluster
		return change(&c, func() {
			for i := range c.Peers {
				c.Peers[i].State, c.Peers[i].Troubles = "serving", []string{} // a busy machine is a trouble
			}
			for i := 2; i < 60; i++ {
				row := c.Peers[1]
				row.Peer, row.Version, row.Zone, row.Asked = named(i), "v0.0.0-20261129005313-7dabd5e17d22", "eu-1", nil
				for j := 2; j < 60; j++ {
					row.Asked = append(row.Asked, admin.ClusterAsk{Peer: named(j), Hits: int64(i * j)})
				}
				switch i {
				case 41:
					row = admin.Silent(named(i), "dead", "dead for 90 s")
				case 42:
					row.State, row.Troubles = "alone", []string{"alone: it considers no other peer alive"}
				}
				c.Peers = append(c.Peers, row)
			}
		})
	case "/status.json":
		var s admin.Status
		return change(&s, func() {
			for i := 2; i < 60; i++ {
				m := s.Members[0]
				if m.Name = named(i); i == 41 {
					m.State = "dead"
				}
				s.Members = append(s.Members, m)
			}
		})
	}
	return nil
}

// looksAtSixty checks what is shown first of sixty peers, the filter, the order, and the matrix.
func looksAtSixty(t *testing.T, b *tab) {
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	for what, is := range map[string][2]string{
		"the header is one line": {`document.querySelector("header").offsetHeight < 40`, "true"},
		"a column of the cluster is hidden": {`[...document.querySelectorAll("#cluster th, #cluster td")].some(e => e.scrollWidth > e.clientWidth + 1) ||
			document.querySelector("#cluster").offsetWidth > document.querySelector("#cluster").parentElement.clientWidth`, "false"},
		"the first rows":                 {`[...document.querySelectorAll("#cluster tbody tr")].slice(0, 3).map(r => r.cells[1].innerText).join()`, "dead,alone,serving"},
		"the first member":               {`document.querySelector("#members tbody td + td").innerText`, "dead"},
		"the dead one's name":            {`document.querySelector("#cluster tbody th span").title`, named(41)},
		"how it is cut":                  {`document.querySelector("#cluster tbody th span").innerText`, "cache-of-th…e-41.example"},
		"troubles stand above the table": {`document.querySelector("#troubles").getBoundingClientRect().top < document.querySelector("#cluster").getBoundingClientRect().top && document.querySelectorAll("#troubles li").length`, "2"},
		"the matrix":                     {`document.querySelectorAll("#matrix thead th").length + " " + document.querySelectorAll("#matrix td.self, #matrix td span").length`, "14 169"},
		"the matrix shows its numbers":   {`document.querySelector("#matrix").offsetWidth <= document.querySelector("#matrix").parentElement.clientWidth`, "true"},
		"where an object is asked":       {`document.querySelector("#ask").getBoundingClientRect().top + scrollY < 800`, "true"},
	} {
		if got := b.eval(is[0]); got != is[1] {
			t.Errorf("%s: %s, want %s", what, got, is[1])
		}
	}
	rows := func(after string) string {
		return b.eval(after + `; [...document.querySelectorAll("#cluster tbody tr")].map(r => r.cells[0].querySelector("[title]")?.title || r.cells[0].innerText).slice(0, 2).join()`)
	}
	write := func(text string) string {
		return `document.querySelector("#filter").value = "` + text + `"; document.querySelector("#filter").dispatchEvent(new Event("input"))`
	}
	press := `document.querySelector("#cluster thead button").click()`
	for _, is := range [][2]string{
		{write("node-17"), named(17) + ",all"}, {write("ALONE"), named(42) + ",all"}, {write(""), named(41) + "," + named(42)},
		{press, "a,b"}, {press, named(59) + "," + named(58)},
	} {
		if got := rows(is[0]); got != is[1] {
			t.Errorf("after %s: %s, want %s", is[0], got, is[1])
		}
	}
	b.eval(`document.querySelector("#level").value = "ERROR"; document.querySelector("#level").dispatchEvent(new Event("input"))`)
	if got := b.eval(`document.querySelectorAll("#events tbody tr").length`); got != "0" {
		t.Errorf("%s errors are among the events", got)
	}
}

var axe = flag.String("axe", "", "axe.min.js of npm's axe-core, by which TestStatusPageInChromium looks for violations of accessibility")

// accessible lists what axe-core finds wrong with the page.
func accessible(t *testing.T, b *tab) {
	t.Helper()
	if *axe == "" {
		return
	}
	script, err := os.ReadFile(*axe)
	if err != nil {
		t.Fatal(err)
	}
	b.eval(string(script) + "; true")
	if got := b.eval(`axe.run().then(r => (r.passes.length < 20 ? ["nothing was looked at"] : []).concat(r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.map(n => n.html.slice(0, 200) + " " + n.any.map(a => a.message).join("; ")).slice(0, 3).join(" | "))).join("\n"))`); got != "" {
		t.Errorf("axe-core: %s", got)
	}
}

// looksRight checks the layout of the page in narrow and wide windows, light and dark, and keeps a picture of each, whose path begins with dir.
func looksRight(t *testing.T, b *tab, dir string) {
	crowded := strings.HasSuffix(dir, "sixty")
	b.call("Emulation.setScrollbarsHidden", map[string]any{"hidden": true}, nil) // pictures of the whole height have none
	for _, width := range []int{390, 800, 1400} {
		for _, theme := range []string{"light", "dark"} {
			b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": false}, nil)
			b.eval(`location.hash = "` + theme + `"; delete document.documentElement.dataset.shown; location.reload()`)
			eventually(t, time.Minute, "the page has its data", func() bool {
				return b.eval(`document.documentElement.dataset.shown`) == "yes"
			})
			height, overflow := b.eval(`document.documentElement.scrollHeight - document.querySelector("#alerts").offsetHeight - document.querySelector("#troubles").offsetHeight`), b.eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`)
			t.Logf("%d px, %s: %s px high", width, theme, height)
			if overflow != "0" {
				t.Errorf("%d px: the page is %s px too wide", width, overflow)
			}
			if n, _ := strconv.Atoi(height); width == 390 && n > 2*844 && !crowded {
				t.Errorf("on a phone the page is %d px high, more than two screens", n)
			}
			accessible(t, b)
			// The last box of each row ends where the page does; no text is wider than its box.
			if lonely := b.eval(`[...document.querySelectorAll("main > details, .tile")].filter((box, i, all) => {
				const at = box.getBoundingClientRect(), end = box.parentElement.getBoundingClientRect().right, next = all[i + 1]?.getBoundingClientRect();
				return !(next && next.top === at.top) && Math.abs(at.right - end) > 1;
			}).map(box => box.innerText).join("|")`); lonely != "" {
				t.Errorf("%d px: a row ends early, with %q", width, lonely)
			}
			if wide := b.eval(`[...document.querySelectorAll(".tile, .tile span, summary, .legend, #said, #reasons")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText).join("|")`); wide != "" {
				t.Errorf("%d px: wider than its box: %q", width, wide)
			}
			var picture struct{ Data []byte }
			b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &picture)
			if err := os.WriteFile(fmt.Sprintf("%s-%d-%s.png", dir, width, theme), picture.Data, 0o644); err != nil || len(picture.Data) < 20_000 {
				t.Errorf("the picture: %d bytes, %v", len(picture.Data), err)
			}
		}
	}
}
