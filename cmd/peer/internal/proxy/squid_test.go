//go:build unix

package proxy

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
)

// bySquid has the fields of a Squid's lookup request.
var bySquid = []string{"Via: 1.1 client, 1.1 m (squid/5.7)", "Cache-Control: max-age=259200, only-if-cached"}

func TestSquidsQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false, cached("x"), "a")
		defer w.close()
		w.get("a", "/held")
		synctest.Wait() // it is stored after it was served
		if r := w.get("a", "/held", bySquid...); r.StatusCode != 200 || r.body != "x" {
			t.Errorf("the stored object: %s %q", r.Status, r.body)
		}
		if r := w.get("a", "/held", append(bySquid, "If-None-Match: \"no\"", "Range: bytes=0-0")...); r.StatusCode != 206 {
			t.Errorf("a range of the stored object: %s", r.Status)
		}
		before := w.origin.count()
		for name, fields := range map[string][]string{
			"Squid 5.7":            bySquid,
			"a Squid without name": {"Via: 1.1 m (squid)", "Cache-Control: max-age=259200, only-if-cached"},
			"Squid in two lines":   {"Via: 1.1 x", "Via: 1.1 m (Squid/6.14)", "Cache-Control: only-if-cached"},
			"what came through us": {"Via: 1.1 a, 1.1 m (squid/5.7)", "Cache-Control: only-if-cached"},
		} {
			if r, err := w.try("a", "GET", "/absent", "", fields...); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s got %v, %v for a false hit, want no reply", name, r.Response, err)
			}
		}
		for name, fields := range map[string][]string{
			"a peer":                      {"Via: 1.1 b", "Cache-Control: only-if-cached"},
			"a client":                    {"Cache-Control: only-if-cached"},
			"a peer that a Squid asked":   {"Via: 1.1 m (squid/5.7), 1.1 b", "Cache-Control: only-if-cached"},
			"somebody with a comment":     {"Via: 1.1 m (not squid)", "Cache-Control: only-if-cached"},
			"somebody with a quoted name": {"Via: 1.1 squid", "Cache-Control: only-if-cached"},
		} {
			if r := w.get("a", "/absent", fields...); r.StatusCode != 504 {
				t.Errorf("%s got %s for a false hit, want 504", name, r.Status)
			}
		}
		if n := w.origin.count(); n != before {
			t.Errorf("%d questions went on to the origin", n-before)
		}
		if c := w.peers["a"].Counters(); c.ServedToSiblings != 2 || c.NotServedToSiblings != 8 || c.NotCached != 9 {
			t.Errorf("counters %+v", c)
		}
	})
}

// No error of ours reaches a Squid's client, whatever the Squid requests.
func TestSquidsQuestionIsNeverRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, cached("x"), "a")
		defer w.close()
		for _, target := range []string{"/absent", "http://elsewhere.test/", "ftp://" + originHost + "/", "/%zz", "/#f"} {
			r, err := w.try("a", "GET", target, "", bySquid...)
			if err == nil && r.StatusCode != 400 || err == nil && !strings.Contains(target, "%zz") { // which net/http itself refuses
				t.Errorf("%s: %s, want no reply", target, r.Status)
			}
		}
		if r := w.get("a", "/", "Via: 1.1 m (squid/5.7)"); r.StatusCode != 200 {
			t.Errorf("a request that is no lookup got %s", r.Status)
		}
	})
}

// A request that is not a lookup, because its method is passed on, does not loop either.
func TestOnlyIfCachedDoesNotHideALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false, cached("x"), "a")
		defer w.close()
		r := w.do("a", "POST", "/form", "data", "Via: 1.1 a, 1.1 m (squid/5.7)", "Cache-Control: only-if-cached")
		if r.StatusCode != http.StatusLoopDetected || w.origin.count() != 0 {
			t.Errorf("%s, %d requests to the origin", r.Status, w.origin.count())
		}
	})
}

// A disk that hangs delays a Squid by half a second only.
func TestSquidDoesNotWaitForOurDisk(t *testing.T) {
	w := newWorld(t, false, cached(strings.Repeat("x", 100_000))) // in a file of its own
	w.tune = func(c *Config) { c.Store.MemoryBytes = 0 }
	dir := t.TempDir()
	w.start("a", dir)
	defer w.close()
	w.get("a", "/held")
	for w.peers["a"].Store().Stats().Objects == 0 { // it is stored after it was served
		runtime.Gosched()
	}
	files, err := filepath.Glob(filepath.Join(dir, "objects", "bodies", "??", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v", files, err)
	}
	if err := errors.Join(os.Remove(files[0]), syscall.Mkfifo(files[0], 0o600)); err != nil { // opening it waits for a writer
		t.Skip("no pipes in this file system: ", err)
	}
	if r, err := w.try("a", "GET", "/held", "", bySquid...); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, %v from a disk that hangs", r.Response, err)
	}
	unblock, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unblock.Close()
}

// Either the answer begins or the timer gives it up, never both.
func TestSquidAnswerIsBegunOrGivenUp(t *testing.T) {
	var wg sync.WaitGroup
	for range 200 {
		rec := httptest.NewRecorder()
		a := &squidAnswer{ResponseWriter: rec}
		wg.Go(a.giveUp)
		a.WriteHeader(200)
		n, err := a.Write([]byte("whole"))
		wg.Wait()
		if written := rec.Body.String(); (err == nil) != (written == "whole") || (err == nil) != (n == 5) || (err == nil) != (a.state.Load() == begun) {
			t.Fatalf("state %d, %q written, %v", a.state.Load(), written, err)
		}
	}
}

func TestOwnPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, reverse := range []bool{false, true} {
			w := newWorld(t, reverse, cached("the origin's"))
			w.tune = func(c *Config) {
				c.Own = func(path string) http.Handler {
					if path != "/own" {
						return nil
					}
					return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ours") })
				}
			}
			w.start("a", t.TempDir())
			if r := w.raw("a", "GET /own HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); r.body != "ours" {
				t.Errorf("reverse %v: %q", reverse, r.body)
			}
			if r := w.raw("a", "GET http://"+originHost+"/own HTTP/1.1\r\nHost: "+originHost+"\r\nConnection: close\r\n\r\n"); r.body != "the origin's" {
				t.Errorf("reverse %v, absolute: %q", reverse, r.body)
			}
			if n := w.peers["a"].Counters().Requests; n != 1 {
				t.Errorf("%d requests counted", n)
			}
			w.close()
		}
	})
}

// raw sends a request exactly as given.
func (w *world) raw(peer, request string) reply {
	w.t.Helper()
	conn, err := w.net.dial(w.t.Context(), "tcp", "peer-"+peer+":3128")
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	go io.WriteString(conn, request)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	return reply{Response: resp, body: string(got), err: err}
}
