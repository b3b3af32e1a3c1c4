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
		"no time":            {" c /k 5\n", `neither SECONDS CLIENT KEY SIZE, Common, Combined, Squid's native log or JSON: "c /k 5"`, 1},
		"no number":          {good + "x c /k 5\n", `time "x": want seconds, 0 or more`, 2},
		"negative time":      {"-1 c /k 5\n", `time "-1"`, 1},
		"infinite time":      {"Inf c /k 5\n", `time "Inf"`, 1},
		"not a time":         {"NaN c /k 5\n", `time "NaN"`, 1},
		"size with unit":     {good + "\n" + good + "1 c /k 5KB\n", `size "5KB": want bytes, 0 to 1099511627776`, 4},
		"negative size":      {"1 c /k -5\n", `size "-5"`, 1},
		"fractional size":    {"1 c /k 5.5\n", `size "5.5"`, 1},
		"size beyond bounds": {"1 c /k 1099511627777\n", "want bytes, 0 to 1099511627776", 1},
		"stamp":              {`h - - [yesterday] "GET /a HTTP/1.1" 200 10` + "\n", "neither", 1},
		"no status":          {`h - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200` + "\n", "neither", 1},
		"broken escape":      {"1 c /a%zz 5\n", `KEY "/a%zz" is no URL path: invalid URL escape "%zz"`, 1},
		"long line":          {good + "1 c /" + strings.Repeat("k", maxLine) + " 5\n", "line of more than 65,536 bytes", 2},
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

// A plain trace has no odd lines.
func TestPlain(t *testing.T) {
	got, err := Read("plain", strings.NewReader("0 - 7 0\r\n\n1.5  c 8 12\n"), Options{})
	want := []Request{{0, "-", "7", 0}, {1.5, "c", "8", 12}}
	if err != nil || !reflect.DeepEqual(got.Requests, want) || got.Summary() != "a plain trace: 2 requests, 1 client" {
		t.Errorf("Read = %+v, %v, want %v", got, err, want)
	}
}
