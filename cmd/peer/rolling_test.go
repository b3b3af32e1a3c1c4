//go:build unix

package main

import (
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

var rolling = flag.Duration("rolling", time.Second/4, "interval of HAProxy's checks in TestRollingRestarts; OPERATING.md has 2s")

// Three peers behind the HAProxy of OPERATING.md are stopped and started again, one after the other, and then replaced while
// they run. No request through it fails, whether two or three checks must, and a replacement fails no check.
func TestRollingRestarts(t *testing.T) {
	binary := program(t, "haproxy")
	if binary == "" {
		t.Skip("haproxy is not installed")
	}
	t.Parallel()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		io.WriteString(w, "body")
	}))
	defer origin.Close()
	addrs := freeAddrs(t, 12)
	listen, admins, gossip, fronts := addrs[:3], addrs[3:6], addrs[6:9], addrs[9:]
	peers, args := make([]*process, 3), make([][]string, 3)
	for i := range peers {
		args[i] = local(t, fmt.Sprint("cache-", i+1), "--listen", listen[i], "--admin", admins[i], "--gossip", gossip[i], "--join", strings.Join(gossip, ","),
			"--origin", origin.URL, "--drain-delay", (5**rolling + 2*time.Second).String())
		peers[i] = spawn(t, args[i]...)
	}

	page, err := os.ReadFile("OPERATING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```haproxy\n")
	text, _, _ = strings.Cut(text, "```")
	for i := range peers {
		_, port, _ := net.SplitHostPort(admins[i])
		text = regexp.MustCompile(fmt.Sprintf(`10\.0\.0\.%d:80`, i+1)).ReplaceAllLiteralString(text, listen[i]+" port "+port)
	}
	text = strings.ReplaceAll(strings.Replace(text, "check port 3129", "check", 1), "inter 2s", fmt.Sprintf("inter %dms", rolling.Milliseconds()))
	conf := "defaults\n mode http\n retries 0\n timeout connect 5s\n timeout client 20s\n timeout server 20s\n timeout check 20s\n" // a busy machine answers a check later than after an interval
	for i, fall := range []string{"2", "3"} {
		conf += fmt.Sprintf("frontend f%s\n bind %s\n default_backend peers%[1]s\n", fall, fronts[i])
		conf += strings.NewReplacer("backend peers", "backend peers"+fall, "fall 3", "fall "+fall).Replace(text)
	}
	conf += "frontend stats\n bind " + fronts[2] + "\n stats enable\n stats uri /\n"
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	startServer(t, fronts[0], binary, "-db", "-f", file)
	seen := func() (up int, failed string) {
		resp, err := http.Get("http://" + fronts[2] + "/;csv")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		rows, err := csv.NewReader(resp.Body).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		column := make(map[string]int)
		for i, name := range rows[0] {
			column[name] = i
		}
		for _, row := range rows[1:] {
			if strings.HasPrefix(row[1], "cache-") {
				failed += row[column["chkfail"]] + " "
				if row[column["status"]] == "UP" && row[column["check_status"]] == "L7OK" {
					up++
				}
			}
		}
		return up, failed
	}
	allUp := func() {
		t.Helper()
		eventually(t, time.Minute, "HAProxy sees all peers", func() bool { up, _ := seen(); return up == 6 })
	}
	allUp()

	done, count := make(chan bool), atomic.Int64{}
	var clients sync.WaitGroup
	for c := range 4 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: c < 2}, Timeout: time.Minute}
			defer client.CloseIdleConnections()
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				case <-time.After(2 * time.Millisecond):
				}
				resp, err := client.Get(fmt.Sprintf("http://%s/%d", fronts[c%2], i%50))
				if err != nil {
					t.Error(err)
					continue
				}
				if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || string(body) != "body" {
					t.Errorf("%s: %s %q, %v", fronts[c%2], resp.Status, body, err)
				}
				resp.Body.Close()
				count.Add(1)
			}
		})
	}
	for i, p := range peers {
		if code := p.stop(); code != 0 {
			t.Errorf("%s ended with %d\n%s", p.name, code, p.stderr.String())
		}
		peers[i] = spawn(t, args[i]...)
		allUp()
	}
	stopped := count.Load()
	_, before := seen()
	for i := range peers {
		if _, _, err := admin.Client(admins[i]).Replace(t.Context(), ""); err != nil {
			t.Errorf("%s is not replaced: %v", peers[i].name, err)
		}
	}
	time.Sleep(2 * *rolling) // until HAProxy has looked again
	if _, after := seen(); after != before {
		t.Errorf("checks that failed during replacements: %s before, %s after", before, after)
	}
	close(done)
	clients.Wait()
	t.Logf("%d requests over three restarts, and %d over three replacements", stopped, count.Load()-stopped)
}
