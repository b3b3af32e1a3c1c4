package node

import (
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
)

// TestPurgeMethod: a PURGE of a client that may purge is carried out everywhere. No PURGE goes to
// the origin.
func TestPurgeMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual(t, 0, nil)
		defer v.stop()
		o := new(tagged)
		v.server.Handler = o
		dir := t.TempDir()
		for i, who := range [][]netip.Prefix{{netip.MustParsePrefix("10.8.8.0/24")}, {netip.MustParsePrefix("10.7.0.0/16")}, nil} {
			v.tune = func(c *config.Config) { c.PurgeClients = who }
			v.start(i, dir+"/"+string(rune('a'+i)))
		}
		pause(3 * time.Second)
		purge := func(i int, target string, fields ...string) (int, string) {
			t.Helper()
			r, _ := http.NewRequest("PURGE", "http://10.0.0."+string(rune('1'+i))+":80"+target, nil)
			for _, f := range fields {
				name, value, _ := strings.Cut(f, ": ")
				r.Header.Add(name, value)
			}
			answer, err := v.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			b, _ := io.ReadAll(answer.Body)
			return answer.StatusCode, string(b)
		}
		for _, c := range []struct {
			at     int
			target string
			fields []string
			code   int
			text   string
			asked  int64 // of the origin, by all peers afterwards
		}{
			{0, "/a/b", nil, 200, "1 response here", 1},
			{0, "/*/b", []string{"X-Purge-Method: pattern"}, 200, "1 response here", 1},
			{0, "/*/c", []string{"X-Purge-Method: pattern"}, 200, "0 responses here", 0},
			{0, "/a/b", []string{"X-Purge-Method: regex"}, 400, "exact or pattern", 0},
			{0, "/other", []string{"Surrogate-Key: x a y"}, 200, "1 response here", 1},
			{0, "/", []string{"xkey: /a/b", "Fastly-Soft-Purge: 1"}, 200, "1 response here", 1},
			{0, "/", []string{"Cache-Tag: none,never"}, 200, "0 responses here", 0},
			{0, "/", []string{"xkey: " + strings.Repeat("x ", 10) + many(300)}, 400, "more than 256 tags", 0},
			{0, "/a/b", []string{"X-Forwarded-For: 10.8.8.8"}, 403, "--trusted-proxies", 0},
			{0, "/a/b", []string{"Via: 1.1 x"}, 403, "(Via) needs that proxy in --trusted-proxies", 0},
			{0, "/a/b", []string{"X-Real-IP: 10.8.8.8"}, 403, "(X-Real-Ip) needs", 0},
			{0, "/a/b", []string{"Cf-Connecting-Ip: 10.8.8.8"}, 403, "--trusted-proxies", 0},
			{1, "/a/b", nil, 403, "--purge-client does not include your address", 0},
			{2, "/a/b", nil, 405, "needs --purge-client", 0},
		} {
			for i := range v.nodes {
				v.send("GET", i, "/a/b")
				pause(3 * time.Second)
			}
			before := o.asked.Load()
			o.version.Add(1)
			if code, text := purge(c.at, c.target, c.fields...); code != c.code || !strings.Contains(text, c.text) {
				t.Errorf("PURGE %s %v at p%d = %d %s", c.target, c.fields, c.at, code, text)
			}
			if n := o.asked.Load() - before; n != 0 {
				t.Errorf("PURGE %s %v: the origin heard of it", c.target, c.fields)
			}
			bodies := map[string]bool{}
			for i := range v.nodes {
				got, _ := v.send("GET", i, "/a/b")
				bodies[got] = true
				pause(3 * time.Second)
			}
			if n := o.asked.Load() - before; n < c.asked || c.asked == 0 && n != 0 || len(bodies) != 1 {
				t.Errorf("PURGE %s %v: then %d requests to the origin, versions %v", c.target, c.fields, n, bodies)
			}
		}
	})
}

// many returns n tags.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(" t" + string(rune(0x100+i)))
	}
	return b.String()
}
