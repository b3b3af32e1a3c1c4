//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a cache and its logs do changes without a restart: where and how they are written, which
// profiles there are, and how long a body may pause. A log that cannot be opened refuses the whole.
func TestReloadOfWhatWasFixed(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "2")
		w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer origin.Close()
	dir := t.TempDir()
	file, first, second := filepath.Join(dir, "peer.yaml"), filepath.Join(dir, "first.log"), filepath.Join(dir, "second.log")
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("origin: "+origin.URL+"\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("access-log: " + first + "\n")
	p := spawn(t, local(t, "a", "--config", file)...)
	get := func(path string) int {
		t.Helper()
		resp, err := http.Get("http://" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	get(p.admin + "/debug/pprof/cmdline")
	configure("access-log: " + second + "\naccess-log-format: json\nprofiles: on\nbetween-bytes-timeout: 100ms\n" +
		"sibling-max-age: 1h\nsibling-compare: 7\n")
	p.cmd.Process.Signal(syscall.SIGHUP)
	const changed = `changed=sibling-max-age,sibling-compare,between-bytes-timeout,profiles,access-log,access-log-format`
	eventually(t, time.Minute, "the log says what changed", func() bool { return strings.Contains(p.stderr.String(), changed) })
	if strings.Contains(p.stderr.String(), "at the next start") {
		t.Error(p.stderr.String())
	}
	if code := get(p.admin + "/debug/pprof/cmdline"); code != http.StatusOK {
		t.Errorf("profiles: %d", code)
	}
	get(p.listen + "/pauses") // ends, although the origin never sends more
	var line struct{ URI string }
	eventually(t, time.Minute, "the other access log has a line of JSON", func() bool {
		text, _ := os.ReadFile(second)
		return json.Unmarshal(text, &line) == nil
	})
	if text, err := os.ReadFile(first); err != nil || strings.Contains(string(text), "pauses") || !strings.HasSuffix(line.URI, "/pauses") {
		t.Errorf("the first log: %q, %v; the second: %+v", text, err, line)
	}
	configure("access-log: " + filepath.Join(first, "x") + "\nprofiles: off\n")
	p.cmd.Process.Signal(syscall.SIGHUP)
	eventually(t, time.Minute, "the log says why nothing changes", func() bool { return strings.Contains(p.stderr.String(), "the configuration is not reloaded") })
	if code := get(p.admin + "/debug/pprof/cmdline"); code != http.StatusOK {
		t.Errorf("after a refused reload: %d", code)
	}
	configure("access-log-format: json\nbetween-bytes-timeout: 100ms\n")
	p.cmd.Process.Signal(syscall.SIGHUP)
	eventually(t, time.Minute, "there are no profiles any more", func() bool { return get(p.admin+"/debug/pprof/cmdline") == http.StatusNotFound })
	before, _ := os.Stat(second)
	get(p.listen + "/pauses")
	time.Sleep(1500 * time.Millisecond) // the log is written every second
	if after, _ := os.Stat(second); after.Size() != before.Size() {
		t.Error("a log that is off has lines")
	}
}
