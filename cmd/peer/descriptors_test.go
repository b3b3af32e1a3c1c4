//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip"
)

// spawnWith starts a peer as a process with a limit for descriptors.
func spawnWith(t *testing.T, descriptors int, args ...string) *process {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, descriptors)
	return spawnCommand(t, exec.Command("sh", append([]string{"-c", script, binary}, args...)...))
}

// TestDescriptorsHaveOwners checks that idle connections of one client, as many as there are
// descriptors, do not keep other clients, /healthz and gossip from being answered.
func TestDescriptorsHaveOwners(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		io.WriteString(w, "hello")
	}))
	defer origin.Close()
	for _, asked := range []bool{true, false} {
		t.Run(fmt.Sprintf("asked=%v", asked), func(t *testing.T) {
			p := spawnWith(t, 1024, "run", "--name", "p1", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0",
				"--origin", origin.URL, "--store", t.TempDir())
			for _, addr := range []string{p.listen, p.admin, p.gossip} {
				for range 1003 {
					c, err := net.Dial("tcp", addr)
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					if asked && addr != p.gossip {
						fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", addr)
						http.ReadResponse(bufio.NewReader(c), nil) // it may have been closed for a later one
					}
				}
			}
			client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			for _, url := range []string{"http://" + p.listen + "/x", "http://" + p.admin + "/healthz", "http://" + p.listen + "/y"} {
				soon(t, url, func() error {
					resp, err := client.Get(url)
					if err != nil {
						return err
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if resp.StatusCode != http.StatusOK {
						return errors.New(resp.Status)
					}
					return nil
				})
			}
			soon(t, "gossip", func() error {
				other, err := gossip.New(gossip.Config{Name: "p2", Bind: "127.0.0.1:0", Join: []string{p.gossip}, Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					return err
				}
				defer other.Close()
				return other.Join(t.Context())
			})
			if s := p.stderr.String(); strings.Contains(s, "too many open files") {
				t.Errorf("the log says:\n%s", s)
			}
		})
	}
}

// soon calls a function that must succeed within 100 ms. Other load on the machine may delay single
// calls, but not five in a row.
func soon(t *testing.T, what string, call func() error) {
	t.Helper()
	for try := 1; ; try++ {
		begun := time.Now()
		err := call()
		took := time.Since(begun)
		switch {
		case err != nil:
			t.Errorf("%s: %v", what, err)
			return
		case took < 500*time.Millisecond: // waiting for an idle connection takes a second or more
			t.Logf("%s: after %v", what, took)
			return
		case try == 5:
			t.Errorf("%s: after %v, five times", what, took)
			return
		}
	}
}
