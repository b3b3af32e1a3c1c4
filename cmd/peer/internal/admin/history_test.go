package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestHistoryKeepsADay(t *testing.T) {
	var h History
	if len(h.Samples()) != 0 {
		t.Error("an empty history is not empty")
	}
	begin := time.Unix(1_000_000, 0)
	for i := range 9999 { // more than two days
		h.Add(Sample{At: begin.Add(time.Duration(i) * HistoryStep), Inserts: uint64(40 * i)})
	}
	all := h.Samples()
	first, last := all[0], all[len(all)-1]
	if span := last.At.Sub(first.At); span > 24*time.Hour || span < 24*time.Hour-2*dayStep || last.Inserts != 40*9998 || len(all) != historySize+daySize {
		t.Errorf("%d samples span %v, the last has %d inserts", len(all), span, last.Inserts)
	}
	for i := range len(all) - 1 {
		if step := all[i+1].At.Sub(all[i].At); step <= 0 || step > dayStep || i >= daySize && step != HistoryStep {
			t.Errorf("sample %d is followed by one %v later", i, step)
		}
	}
}

// days is a peer with two old samples and a current one.
type days struct{ source }

func (d days) History() []Sample {
	at := d.status.Now
	return []Sample{{At: at.Add(-40 * time.Second), Inserts: 1}, {At: at.Add(-20 * time.Second), Inserts: 2}, {At: at, Inserts: 3}}
}

func TestHistorySince(t *testing.T) {
	h := Handler(days{source{example()}}, NewDurations(), func() Access { return Access{} })
	for query, want := range map[string]string{
		"":                                    "123",
		"?since=2020-01-01T00:00:00Z":         "123",
		"?since=2026-01-02T03:03:25Z":         "23",
		"?since=2026-01-02T04:03:25%2B01:00":  "23",
		"?since=2026-01-02T03:03:44.9Z":       "23",
		"?since=2026-01-02T03:03:45Z":         "3",
		"?since=2099-01-01T00:00:00Z":         "3", // always the current one, even if the client's clock is wrong
		"?since=":                             "since is not a time",
		"?since=1767323045":                   "since is not a time",
		"?since=2026-01-02T04:03:25+01:00":    "since is not a time", // a plus that is not escaped is a space
		"?since=2026-02-30T00:00:00Z&since=1": "since is not a time",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/history.json"+query, nil))
		got, samples := w.Body.String(), []Sample{}
		if w.Code == http.StatusOK {
			if err := json.Unmarshal(w.Body.Bytes(), &samples); err != nil {
				t.Fatal(err)
			}
			got = ""
			for _, s := range samples {
				got += fmt.Sprint(s.Inserts)
			}
		}
		if bad := len(want) > 3; !strings.HasPrefix(got, want) || len(got) > 3 != bad || (w.Code == http.StatusBadRequest) != bad {
			t.Errorf("GET /history.json%s = %d %q, want %q", query, w.Code, got, want)
		}
	}
}

// The page is sent to browsers only, and may only send requests to its own server.
func TestPage(t *testing.T) {
	addr, get := serve(t, example())
	if code, body := get("/"); code != 200 || !strings.HasPrefix(body, "/healthz /readyz") {
		t.Errorf("GET / by a program = %d %q", code, body)
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,*/*")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	policy := resp.Header.Get("Content-Security-Policy")
	if string(body) != page || !strings.Contains(policy, "default-src 'none'") || strings.Count(policy, "'sha256-") != 2 || strings.Contains(policy, "unsafe") {
		t.Errorf("%d bytes under %q", len(body), policy)
	}
	for _, outside := range []string{"http:", "https:", " src=", "@import", "url("} {
		if n := strings.Count(strings.ReplaceAll(page, "http://www.w3.org/2000/svg", ""), outside); n > 0 {
			t.Errorf("the page has %d times %q: it needs nothing from outside", n, outside)
		}
	}
	if code, body := get("/history.json"); code != 200 || !strings.Contains(body, `"bytes_from_origins"`) {
		t.Errorf("GET /history.json = %d %s", code, body)
	}
	if code, body := get("/cluster.json"); code != 200 || !strings.Contains(body, `"peer": "peer-1"`) || !strings.Contains(body, `"hits": 5`) {
		t.Errorf("GET /cluster.json = %d %s", code, body)
	}
}
