//go:build linux

package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/gossip/httpcache"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"golang.org/x/sys/unix"
)

// TestSpoiledDisk flips a bit in each object of a serving peer, as a disk may, or truncates its
// file: neither clients nor siblings get a wrong byte, every fault is detected, and afterwards all
// objects are right again.
func TestSpoiledDisk(t *testing.T) {
	bodyOf := func(path string) []byte {
		n := 70_000 // in files of their own
		switch path[len(path)-1] % 3 {
		case 1:
			n = 300_000
		case 2:
			n = 2_000_000
		}
		return bytes.Repeat([]byte(path+"\n"), n/len(path))[:n]
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Content-Length", fmt.Sprint(len(bodyOf(r.URL.Path))))
		w.Write(bodyOf(r.URL.Path))
	}))
	defer origin.Close()
	target, _ := url.Parse(origin.URL)
	ask := func(peer, path string, sibling bool) (got []byte, status int, err error) {
		r, _ := http.NewRequest(http.MethodGet, peer+path, nil)
		if sibling {
			r.Header.Set("Cache-Control", "only-if-cached")
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return nil, 0, err
		}
		defer resp.Body.Close()
		got, err = io.ReadAll(resp.Body)
		return got, resp.StatusCode, err
	}
	objects := 15
	if testing.Short() { // with the race detector
		objects = 3
	}
	for _, sibling := range []bool{false, true} {
		for _, cut := range []bool{false, true} {
			dir := t.TempDir()
			h, err := New(Config{Settings: Settings{Origin: target}, Config: httpcache.Config{Name: "a"}, Store: diskstore.Options{Dir: dir, MaxBytes: 256 << 20}})
			if err != nil {
				t.Fatal(err)
			}
			peer := httptest.NewUnstartedServer(h)
			peer.Config.ConnContext = conn.Context // as package node serves
			peer.Listener = conn.Listen(peer.Listener, 0, nil)
			peer.Start()
			for i := range objects {
				for range 2 { // a miss, and a hit from then on
					path := fmt.Sprintf("/%03d", i)
					if got, _, err := ask(peer.URL, path, false); err != nil || !bytes.Equal(got, bodyOf(path)) {
						t.Fatalf("%s: %d bytes, %v", path, len(got), err)
					}
				}
			}
			for h.Counters().Stored < uint64(objects) { // the last answer may be there before its file has its name
				runtime.Gosched()
			}
			files, _ := filepath.Glob(filepath.Join(dir, "objects", "*", "*"))
			if len(files) != objects {
				t.Fatalf("%d files", len(files))
			}
			for i, path := range files {
				spoil(t, path, int64(i*1301)%40_000, cut)
			}
			for i := range objects {
				path := fmt.Sprintf("/%03d", i)
				got, status, err := ask(peer.URL, path, sibling)
				want := bodyOf(path)
				switch {
				case status == http.StatusGatewayTimeout && sibling: // it isn't there any more
				case !bytes.HasPrefix(want, got):
					t.Errorf("sibling=%v cut=%v %s: wrong bytes", sibling, cut, path)
				case err == nil && len(got) != len(want):
					t.Errorf("sibling=%v cut=%v %s: %d of %d bytes and no error", sibling, cut, path, len(got), len(want))
				}
			}
			if got := h.Store().Stats().Corrupt; got != uint64(objects) {
				t.Errorf("sibling=%v cut=%v: %d of %d were found corrupt", sibling, cut, got, objects)
			}
			for i := range objects {
				path := fmt.Sprintf("/%03d", i)
				if got, _, err := ask(peer.URL, path, false); err != nil || !bytes.Equal(got, bodyOf(path)) {
					t.Errorf("sibling=%v cut=%v %s afterwards: %d bytes, %v", sibling, cut, path, len(got), err)
				}
			}
			peer.Close()
			h.Close()
		}
	}
}

// spoil flips a bit of a file, or truncates it, and drops it from the page cache.
func spoil(t *testing.T, path string, at int64, cut bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if cut {
		err = f.Truncate(1000)
	} else {
		b := make([]byte, 1)
		f.ReadAt(b, at)
		b[0] ^= 0x20
		_, err = f.WriteAt(b, at)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
	if err != nil {
		t.Fatal(err)
	}
}
