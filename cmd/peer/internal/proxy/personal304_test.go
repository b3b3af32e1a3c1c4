package proxy

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// TestPersonalConfirmation checks who gets the header of a 304: the client whose request provoked it and,
// only if it may be stored, those that waited with it, later ones, and those of a sibling.
func TestPersonalConfirmation(t *testing.T) {
	const mine = "Cookie: id=1"
	second := time.Second
	for name, c := range map[string]struct {
		stored, of string // fields of the stored response, and of the 304
		client     string // the leader's field
		rules      rules.Set
		shared     bool // the 304 may be stored
		cookie     string
	}{
		"for everybody":              {of: "Cache-Control: max-age=60", client: mine, shared: true},
		"private":                    {of: "Cache-Control: private, max-age=60", client: mine},
		"a private field":            {of: `Cache-Control: max-age=60, private="x-for"`, client: mine},
		"no-store":                   {of: "Cache-Control: no-store", client: mine},
		"private for shared caches":  {of: "CDN-Cache-Control: private", client: mine},
		"private, after a targeted":  {stored: " | CDN-Cache-Control: max-age=1", of: "Cache-Control: private", client: mine},
		"no-store, after a targeted": {stored: " | CDN-Cache-Control: max-age=1", of: "Cache-Control: no-store", client: mine},
		"varies by the cookie":       {of: "Cache-Control: max-age=60 | Vary: Cookie", client: mine},
		"varies by anything":         {of: "Cache-Control: max-age=60 | Vary: *", client: mine},
		"a cookie":                   {of: "Cache-Control: max-age=60 | Set-Cookie: a=b", client: mine, cookie: "a=b"},
		"a cookie alone":             {of: "Set-Cookie: a=b", client: mine, cookie: "a=b"},
		"a private cookie":           {of: "Cache-Control: private | Set-Cookie: a=b", client: mine, cookie: "a=b"},
		"a cookie that a rule drops": {of: "Cache-Control: max-age=60 | Set-Cookie: a=b", client: mine, shared: true,
			rules: rules.Set{{SetCookie: rules.Drop, Types: []string{"text/*"}}}},
		"a cookie that a rule stores": {of: "Cache-Control: max-age=60 | Set-Cookie: a=b", client: mine, shared: true, cookie: "a=b",
			rules: rules.Set{{SetCookie: rules.Store}}},
		"private, with a rule":      {of: "Cache-Control: private", client: mine, rules: rules.Set{{MinTTL: &second}}},
		"with credentials":          {of: "Cache-Control: max-age=60", client: "Authorization: Basic YTpi"},
		"with credentials, for all": {of: "Cache-Control: max-age=60, public", client: "Authorization: Basic YTpi", shared: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, false, func(w http.ResponseWriter, r *http.Request, n int) {
					personal, status := r.Header["Cookie"] != nil || r.Header["Authorization"] != nil, 200
					own := "Cache-Control: max-age=1 | Content-Type: text/plain" + c.stored
					if r.Header["If-None-Match"] != nil {
						own, status = "Cache-Control: max-age=60", 304
						time.Sleep(time.Second)
					}
					if personal {
						own = "X-For: leader | " + c.of
					}
					row{origin: []scripted{{status: status, fields: own + ` | ETag: "a"`}}}.serve(w, r, 0)
				}, "a", "b")
				defer w.close()
				for _, p := range w.peers {
					s := p.applied.Load().Settings
					s.Rules = c.rules
					p.Configure(s)
				}
				w.get("a", "/x")
				time.Sleep(2 * time.Second)
				check := func(who string, r reply, gets bool) {
					var got, want [2]string
					got = [2]string{r.Header.Get("X-For"), r.Header.Get("Set-Cookie")}
					if gets {
						want = [2]string{"leader", c.cookie}
					}
					if got != want || r.StatusCode != 200 || r.Header.Get("Summarycache-Cache-Control") != "" {
						t.Errorf("%s: status %d, X-For and Set-Cookie %q, want %q", who, r.StatusCode, got, want)
					}
				}
				var clients sync.WaitGroup
				clients.Go(func() { check("the leader", w.get("a", "/x", c.client), true) })
				for i := range 3 {
					clients.Go(func() {
						time.Sleep(100 * time.Millisecond)
						check(fmt.Sprintf("follower %d", i), w.get("a", "/x"), c.shared)
					})
				}
				clients.Wait()
				if n := w.origin.count(); c.shared != (n == 2) {
					t.Errorf("%d origin requests", n)
				}
				check("a client of a sibling", w.get("b", "/x"), c.shared)
				check("a later client", w.get("a", "/x"), c.shared)
				time.Sleep(2 * time.Second)
				check("the last client", w.get("a", "/x"), c.shared)
			})
		})
	}
}
