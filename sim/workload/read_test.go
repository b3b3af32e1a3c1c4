package workload

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const small = "12.5 ab /a?x=1 100\n13 cd /b 0\n12 - 77 5\n14 ab /a?x=1 300\n15 ef // 9"

func squeeze(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadFile(t *testing.T) {
	wantRequests := []Request{
		{12.5, "ab", "/a?x=1", 100}, {13, "cd", "/b", 0}, {13, "-", "/77", 5}, {14, "ab", "/a?x=1", 300}, {15, "ef", "//", 9},
	}
	wantSizes := map[string]int64{"/a?x=1": 300, "/b": 0, "/77": 5, "//": 9}
	for name, data := range map[string][]byte{
		"plain.ptrace": []byte(small), "squeezed.ptrace.gz": squeeze(t, small), "misnamed.txt": squeeze(t, small),
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFile(path, Options{Targets: true})
		if err != nil {
			t.Fatalf("ReadFile(%s): %v", name, err)
		}
		if got.Name != name || !reflect.DeepEqual(got.Requests, wantRequests) || !reflect.DeepEqual(got.Sizes, wantSizes) {
			t.Errorf("ReadFile(%s) = %+v, want %v and %v", name, got, wantRequests, wantSizes)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ReadFile of no file = %v, want os.ErrNotExist", err)
	}
}

func TestReadRefusesBrokenLines(t *testing.T) {
	good := "1 c /k 5\n"
	cut := squeeze(t, strings.Repeat(good, 10000))
	damaged := squeeze(t, good)
	damaged[len(damaged)-6] ^= 1
	for name, c := range map[string]struct {
		text, reason string
		line         int
	}{
		"empty":              {"", "no requests", 1},
		"three fields":       {good + good + "1 c /k\n", `3 fields where SECONDS CLIENT KEY SIZE has 4: "1 c /k"`, 3},
		"five fields":        {good + "1 c /k 5 6\n", "5 fields", 2},
		"only blank lines":   {"\n \n", "no requests", 3},
		"no time":            {" c /k 5\n", "3 fields", 1},
		"no number":          {good + "x c /k 5\n", `time "x": want seconds, 0 or more`, 2},
		"negative time":      {"-1 c /k 5\n", `time "-1"`, 1},
		"infinite time":      {"Inf c /k 5\n", `time "Inf"`, 1},
		"not a time":         {"NaN c /k 5\n", `time "NaN"`, 1},
		"size with unit":     {good + "\n" + good + "1 c /k 5KB\n", `size "5KB": want bytes, 0 to 1099511627776`, 4},
		"negative size":      {"1 c /k -5\n", `size "-5"`, 1},
		"fractional size":    {"1 c /k 5.5\n", `size "5.5"`, 1},
		"size beyond bounds": {"1 c /k 1099511627777\n", "want bytes, 0 to 1099511627776", 1},
		"stamp":              {`h - - [yesterday] "GET /a HTTP/1.1" 200 10` + "\n", `time "yesterday"`, 1},
		"no status":          {`h - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200` + "\n", "STATUS BYTES", 1},
		"no log any more":    {common + "1 c /k 5\n", "STATUS BYTES", 4},
		"squid's fields":     {squid + "1 c /k 5\n", "at least the 7", 4},
		"broken escape":      {"1 c /a%zz 5\n", `KEY "/a%zz" is no URL path: invalid URL escape "%zz"`, 1},
		"long line":          {good + "1 c /" + strings.Repeat("k", maxLine) + " 5\n", "longer than 65536 bytes", 2},
		"cut short":          {string(cut[:len(cut)/2]), "ends early", 0},
		"damaged":            {string(damaged), "checksum", 2},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read("file.ptrace", strings.NewReader(c.text), Options{Targets: true})
			var bad *LineError
			if !errors.As(err, &bad) {
				t.Fatalf("Read = %v, want a LineError", err)
			}
			if bad.File != "file.ptrace" || c.line != 0 && bad.Line != c.line || !strings.Contains(bad.Reason, c.reason) {
				t.Errorf("Read = %v, want line %d with %q", bad, c.line, c.reason)
			}
			if len(bad.Error()) > 200 {
				t.Errorf("message of %d bytes, want a short one", len(bad.Error()))
			}
		})
	}
	if _, err := Read("f", strings.NewReader("\x1f\x8bnot really"), Options{}); err == nil || !strings.Contains(err.Error(), "not a gzip file") {
		t.Errorf("Read of a false gzip header = %v", err)
	}
}

const (
	common = `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 10 "-" "x"` + "\n" +
		`1.2.3.4 - - [17/May/2015:10:05:02 +0000] "POST /a HTTP/1.1" 200 10` + "\n" +
		`5.6.7.8 - - [17/May/2015:10:05:01 +0000] "GET /b HTTP/1.1" 304 -` + "\n"
	squid = "1066036250.603 310 10.0.0.1 TCP_MISS/200 3452 GET http://a.example/ - NONE/- text/html\n" +
		"1066036251.603 310 10.0.0.2 TCP_HIT/200 99 GET http://a.example/ - NONE/- text/html\n" +
		"1066036252.603 310 10.0.0.2 TCP_MISS/404 99 GET http://b.example/ - NONE/- text/html\n"
)

func TestFormats(t *testing.T) {
	at := func(s string) float64 {
		when, err := time.Parse(time.TimeOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return when.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)).Seconds() + 1431820800 // 17 May 2015
	}
	for name, c := range map[string]struct {
		text string
		want []Request
	}{
		"common":      {common, []Request{{at("10:05:03"), "1.2.3.4", "/a", 10}, {at("10:05:03"), "5.6.7.8", "/b", 0}}},
		"squid":       {squid, []Request{{1066036250.603, "10.0.0.1", "http://a.example/", 3452}, {1066036251.603, "10.0.0.2", "http://a.example/", 99}}},
		"plain":       {"0 - 7 0\r\n\n1.5  c 8 12\n", []Request{{0, "-", "7", 0}, {1.5, "c", "8", 12}}},
		"broken ones": {"0 - 7 0\n1 - 8\nx - 8 0\n2 - 8 -1\n3 - 9 1\n", []Request{{0, "-", "7", 0}, {3, "-", "9", 1}}},
	} {
		got, err := Read(name, strings.NewReader(c.text), Options{Skip: true})
		if err != nil || !reflect.DeepEqual(got.Requests, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		} else if skipped := got.Skipped; (skipped > 0) != (name == "broken ones") || skipped > 3 {
			t.Errorf("%s: %d lines skipped", name, skipped)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(common))
	f.Add([]byte(squid))
	f.Add([]byte(small))
	f.Add(squeeze(f, small))
	f.Add(squeeze(f, small)[:20])
	f.Add([]byte("1 c /a%2Fb 5\n1e3 c \x00 0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		targets := len(data)%2 == 0
		got, err := Read("fuzz", bytes.NewReader(data), Options{Targets: targets, Skip: len(data)%3 == 0})
		if (got == nil) == (err == nil) {
			t.Fatalf("Read = %v, %v", got, err)
		}
		if got == nil {
			return
		}
		last := 0.0
		for _, r := range got.Requests {
			if r.Key == "" || targets && r.Key[0] != '/' || r.Size < 0 || !(r.Seconds >= last) || got.Sizes[r.Key] < r.Size {
				t.Fatalf("Read let %+v pass", r)
			}
			last = r.Seconds
		}
	})
}
