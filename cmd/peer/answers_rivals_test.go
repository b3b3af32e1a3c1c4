//go:build unix

package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var answersPage = flag.String("answers-page", "", "with -answers: write ANSWERS.md to this file; without it, the page that there is must say the same")

// rivalLanes returns lanes for a cache whose configuration names each of them.
func rivalLanes(t *testing.T, lanes int, answer func(n int) *answer) (list []*lane) {
	for i := range lanes {
		list = append(list, newLane(t, fmt.Sprintf("lane%d.test", i), answer))
	}
	return list
}

// answerNginx is an nginx that caches, with kept connections to the lanes.
func answerNginx(t *testing.T, lanes int, answer func(n int) *answer) *answerFront {
	t.Helper()
	if program(t, "nginx") == "" {
		return nil
	}
	addr := freeAddr(t)
	f := &answerFront{name: "nginx", limit: rivalLimit, addr: func(*lane) string { return addr }, lanes: rivalLanes(t, lanes, answer)}
	text := "server_names_hash_max_size 4096; proxy_cache_path " + t.TempDir() + ` keys_zone=c:10m; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; proxy_cache c;
	proxy_cache_convert_head off; proxy_cache_key $request_method$host$request_uri; proxy_read_timeout 1s; keepalive_requests 1000000;
`
	for i, l := range f.lanes {
		text += fmt.Sprintf("upstream u%d { server %s max_fails=0; keepalive 16; }\nserver { listen %s; server_name %s; location / { proxy_pass http://u%d; } }\n", i, l.addr, addr, l.host, i)
	}
	startNginx(t, addr, text)
	return f
}

// answerVarnish is a Varnish with its built-in rules. What HEAD asks is not stored there: Varnish would ask by GET.
func answerVarnish(t *testing.T, lanes int, answer func(n int) *answer) *answerFront {
	t.Helper()
	varnishd := program(t, "varnishd")
	if varnishd == "" {
		return nil
	}
	addr := freeAddr(t)
	f := &answerFront{name: "Varnish", limit: rivalLimit, addr: func(*lane) string { return addr }, lanes: rivalLanes(t, lanes, answer)}
	dir, err := os.MkdirTemp("", "varnish") // short, and open to the user that it runs as
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	text, recv := "vcl 4.1;\n", ""
	for i, l := range f.lanes {
		host, port, _ := net.SplitHostPort(l.addr)
		text += fmt.Sprintf("backend b%d { .host = %q; .port = %q; .first_byte_timeout = 1s; .between_bytes_timeout = 1s; }\n", i, host, port)
		recv += fmt.Sprintf("	if (req.http.host == %q) { set req.backend_hint = b%d; }\n", l.host, i)
	}
	text += "sub vcl_recv {\n" + recv + "	if (req.method == \"HEAD\") { return (pass); }\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "default.vcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	startServer(t, addr, varnishd, "-F", "-n", dir, "-a", addr, "-f", filepath.Join(dir, "default.vcl"), "-s", "default,256m", "-t", "0")
	return f
}

// storedAlone says why a peer may store an answer that neither nginx nor Varnish stores; "" = it may not.
func storedAlone(a *answer, j judged) string {
	for _, of := range []struct {
		reason string
		is     bool
	}{
		{"nginx takes 4 KiB of header by default, Varnish 8 KiB a line and 64 fields",
			bytes.Index(a.raw(), []byte("\r\n\r\n")) > 4000 || len(j.fields) > 50},
		{"nginx and Varnish read no quoted numbers, and of several not the first",
			strings.Count(fmt.Sprint(j.list("Cache-Control")), "max-age") > 1},
		{"Varnish reads no trailers, and nginx announces what frames, which Go's client refuses", j.trailed},
		{"neither reads interim answers: 103 is passed on as it is, or refused", strings.Contains(a.before, "HTTP/1.")},
	} {
		if of.is {
			return of.reason
		}
	}
	return ""
}

// compareRivals sends answers to nginx and Varnish as well, and returns those that a peer has stored,
// and neither of them.
func compareRivals(t *testing.T, numbers []int, answer func(n int) *answer, peer map[int]*exchanged) (found []answerFinding) {
	nginx, varnish := answerNginx(t, 200, answer), answerVarnish(t, 200, answer)
	if nginx == nil || varnish == nil {
		t.Log("nginx or varnishd is not installed")
		return nil
	}
	at := make(map[string]map[int]*exchanged)
	for _, f := range []*answerFront{nginx, varnish} {
		at[f.name] = f.send(numbers)
		found, counts := answerFindings(numbers, answer, at[f.name])
		foreign := 0
		for _, o := range found {
			if o.what == "foreign bytes" || o.what == "bytes behind an answer" {
				foreign++
			}
		}
		t.Logf("%s: %v; %d times bytes of others", f.name, counts, foreign)
	}
	alone, reasons := 0, make(map[string]int)
	for _, n := range numbers {
		a := answer(n)
		if j := judge(a.method, a.raw(), a.stalls); peer[n].stored && !at["nginx"][n].stored && !at["Varnish"][n].stored {
			reason := storedAlone(a, j)
			if alone++; reason == "" {
				a1, a2 := at["nginx"][n].first, at["Varnish"][n].first
				detail := fmt.Sprintf("at nginx %s %d, at Varnish %s %d", a1.kind, a1.status, a2.kind, a2.status)
				found = append(found, answerFinding{a, j, "the store", "stored alone", detail})
			}
			reasons[reason]++
		}
	}
	t.Logf("of %d answers the peer alone stores %d: %v", len(numbers), alone, reasons)
	return found
}

// TestAnswerRowsOfRivals sends the rows to nginx and Varnish, and compares what comes of them with ANSWERS.md.
func TestAnswerRowsOfRivals(t *testing.T) {
	if *answersOf == 0 {
		t.Skip("compares with nginx and Varnish: -answers N")
	}
	answer := func(n int) *answer { return answerRows[n].answer(n) }
	var numbers []int
	for n := range answerRows {
		numbers = append(numbers, n)
	}
	var at []map[int]*exchanged
	for _, f := range []*answerFront{answerNginx(t, len(numbers), answer), answerVarnish(t, len(numbers), answer)} {
		at = append(at, f.send(numbers))
	}
	page, err := os.ReadFile("ANSWERS.md")
	if err != nil {
		t.Fatal(err)
	}
	before, after := generatedPart.FindStringSubmatchIndex(string(page)), answerTable(at)
	if before == nil {
		t.Fatal("ANSWERS.md has no part that is generated")
	}
	text := string(page[:before[2]]) + after + string(page[before[3]:])
	switch {
	case *answersPage != "":
		if err := os.WriteFile(*answersPage, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	case text != string(page):
		t.Errorf("ANSWERS.md differs from what came of the rows; -answers-page ANSWERS.md writes\n%s", after)
	}
}

var generatedPart = regexp.MustCompile(`(?s)<!-- generated -->\n\n(.*)\n<!-- end -->`)

// answerTable returns the rows in which a peer is stricter than nginx or Varnish, those with the same of
// everything in one line. Of a fault in the body it says only whether a rival stored it: Varnish streams, and its
// client gets a 503, a part or all of it, by what of it had left when the fault was read.
func answerTable(rivals []map[int]*exchanged) string {
	came := func(e *exchanged, body bool) string {
		what, stored := e.came()
		switch {
		case body && stored == "no":
			return "not stored"
		case what == "none":
			return "unreadable" // to this client, or a closed connection
		}
		return what + map[string]string{"yes": ", stored"}[stored]
	}
	var keys []string
	names := make(map[string][]string)
	for n, r := range answerRows {
		nginx, varnish := came(rivals[0][n], r.want == "cut"), came(rivals[1][n], r.want == "cut")
		passes, stored := strings.Contains(nginx+varnish, "passes"), strings.Contains(nginx+varnish, ", stored")
		if refuses := r.want == "502" || r.want == "cut"; !(refuses && passes) && !(r.stored == "no" && stored) {
			continue
		}
		key := fmt.Sprintf("| %s | %s | %s | %s |", r.pageWant(), nginx, varnish, r.why)
		if names[key] == nil {
			keys = append(keys, key)
		}
		names[key] = append(names[key], r.name)
	}
	out := "| answer | peer | nginx | Varnish | RFC and section |\n|---|---|---|---|---|\n"
	for _, key := range keys {
		out += "| " + strings.Join(names[key], "; ") + " " + key + "\n"
	}
	return out
}

// pageWant is what the page says of a row at a peer.
func (r answerRow) pageWant() string {
	return cmp.Or(map[string]string{"cut": "cut or 502"}[r.want], r.want) + map[string]string{"yes": ", stored"}[r.stored]
}

// ANSWERS.md names rows that there are, with what must come of them.
func TestAnswersPage(t *testing.T) {
	page, err := os.ReadFile("ANSWERS.md")
	if err != nil {
		t.Fatal(err)
	}
	part := generatedPart.FindSubmatch(page)
	if part == nil {
		t.Fatal("ANSWERS.md has no part that is generated")
	}
	lines := strings.Split(strings.TrimSpace(string(part[1])), "\n")[2:]
	if len(lines) < 5 {
		t.Errorf("ANSWERS.md has %d rows", len(lines))
	}
	for _, line := range lines {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		for name := range strings.SplitSeq(cells[0], "; ") {
			i := slices.IndexFunc(answerRows, func(r answerRow) bool { return r.name == name })
			if i < 0 {
				t.Errorf("ANSWERS.md: no row %q", name)
			} else if r := answerRows[i]; cells[1] != r.pageWant() || cells[4] != r.why {
				t.Errorf("ANSWERS.md: %s: %s by %s, the test wants %s by %s", name, cells[1], cells[4], r.pageWant(), r.why)
			}
		}
	}
}
