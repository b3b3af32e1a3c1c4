package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/table"
)

// TestBars: the longest bar has the whole width, its parts follow each other, and the legend stands below the bars.
func TestBars(t *testing.T) {
	r := &compared{}
	r.Peers, r.Size, r.Ways = 3, 1<<20, []cost{{Own: 0}, {Own: 1}}
	var b strings.Builder
	r.bars(&b, "Requests", func(w cost) [3]int64 { return [3]int64{int64(w.Own), 2 * int64(w.Own), 4 - int64(w.Own)} }, table.Count[int64])
	if got := b.String(); got != wantBars {
		t.Errorf("bars() = %s\nwant %s", got, wantBars)
	}
	for i, want := range []string{"no cache", "3 caches apart", "one cache of 3.00 MiB", "owner hashing", "ICP, asking all", "digests, as peer"} {
		if got := r.title(i); got != want {
			t.Errorf("title(%d) = %q, want %q", i, got, want)
		}
	}
}

// TestPlanPageInChromium: on a phone as on a desk, the page scrolls in one direction, each chart can be read and has all of
// its texts, and its legend names what it shows.
func TestPlanPageInChromium(t *testing.T) {
	chromium := browser(t)
	dir := t.TempDir()
	if of := os.Getenv("SCREENSHOTS"); of != "" {
		dir = of
	}
	path := filepath.Join(t.TempDir(), "page.html")
	code, _, stderr := call(t, "plan", "--trace", filepath.Join("..", "..", "sim", "systems", "testdata", "elastic-apache.ptrace.gz"), "--peers", "3", "--html", path)
	if code != 0 {
		t.Fatal(stderr)
	}
	b := openTab(t, chromium, "file://"+path)
	eventually(t, time.Minute, "the page is loaded", func() bool { return b.eval(`document.readyState`) == "complete" })
	for _, width := range []int{390, 1280} {
		b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": false}, nil)
		for what, script := range map[string]string{
			"pixels too wide": `document.documentElement.scrollWidth - document.documentElement.clientWidth`,
			"texts too small": `[...document.querySelectorAll("svg text")].filter(e => e.getBoundingClientRect().height < 10).length`,
			"texts cut off": `[...document.querySelectorAll("svg")].flatMap(s => [...s.querySelectorAll("text")].filter(e => {
				const at = e.getBBox(), all = s.viewBox.baseVal;
				return at.x < 0 || at.x + at.width > all.width || at.y + at.height > all.height;
			})).length`,
			"colours without a bar": `[...document.querySelectorAll("svg")].flatMap(s => ["own", "sibling", "origin"].filter(part =>
				s.querySelectorAll("." + part + ":not(:has(title))").length !==
				+[...s.querySelectorAll("." + part + ":has(title)")].some(e => e.width.baseVal.value > 0))).length`,
		} {
			if n := b.eval(script); n != "0" {
				t.Errorf("%d px: %s %s", width, n, what)
			}
		}
		var picture struct{ Data []byte }
		b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &picture)
		if err := os.WriteFile(filepath.Join(dir, "plan-"+strconv.Itoa(width)+".png"), picture.Data, 0o644); err != nil {
			t.Error(err)
		}
	}
}

const wantBars = `<h2>Requests</h2>
<div class="wide"><svg viewBox="0 0 880 88" role="img" aria-label="Requests">
<text x="212" y="17" text-anchor="end">no cache</text>
<rect class="own" x="220.0" y="2" width="0.0" height="20"><title>own: 0</title></rect>
<rect class="sibling" x="220.0" y="2" width="0.0" height="20"><title>sibling: 0</title></rect>
<rect class="origin" x="220.0" y="2" width="373.3" height="20"><title>origin: 4</title></rect>
<text x="599.3" y="17">4</text>
<text x="212" y="43" text-anchor="end">3 caches apart</text>
<rect class="own" x="220.0" y="28" width="93.3" height="20"><title>own: 1</title></rect>
<rect class="sibling" x="313.3" y="28" width="186.7" height="20"><title>sibling: 2</title></rect>
<rect class="origin" x="500.0" y="28" width="280.0" height="20"><title>origin: 3</title></rect>
<text x="786.0" y="43">3</text>
<rect class="own" x="220" y="60" width="14" height="14"/><text x="240" y="72">own</text>
<rect class="sibling" x="370" y="60" width="14" height="14"/><text x="390" y="72">sibling</text>
<rect class="origin" x="520" y="60" width="14" height="14"/><text x="540" y="72">origin</text>
</svg></div>
`
