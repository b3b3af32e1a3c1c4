package simulation

import (
	"fmt"
	"net/http"
	"strings"
)

// Of one page in four the origin has another answer for whoever sends a cookie or credentials, by
// caching fields that keep it from all others. X-For says whose it is.

// session is who sends a request; "" = anybody.
func session(h http.Header) string {
	for _, of := range []string{h.Get("Cookie"), h.Get("Authorization")} {
		if _, who, ok := strings.Cut(of, "session-"); ok {
			return who
		}
	}
	return ""
}

// personal replaces the header of a page by what only one client may get.
func (o *origin) personal(p *page, r *http.Request, header string) string {
	who := session(r.Header)
	if who == "" || p.url >= tinyURL || p.url%4 != 2 {
		return header
	}
	o.w.sometimes("an answer for one client")
	var b strings.Builder
	for line := range strings.Lines(header) {
		if !strings.HasPrefix(line, "Cache-Control: ") {
			b.WriteString(line)
		}
	}
	fmt.Fprintf(&b, "X-For: %s\r\n", who)
	switch p.url / 4 % 4 {
	case 0:
		b.WriteString("Cache-Control: private, max-age=60\r\n")
	case 1:
		b.WriteString("Cache-Control: no-store\r\n")
	case 2:
		fmt.Fprintf(&b, "Cache-Control: private\r\nSet-Cookie: id=session-%s\r\n", who)
	default: // neither says that it may be shared
		b.WriteString("Cache-Control: max-age=60\r\n")
		if r.Header.Get("Cookie") != "" {
			fmt.Fprintf(&b, "Set-Cookie: id=session-%s\r\n", who)
		}
	}
	return b.String()
}

// judgePrivate checks that an answer is for its client or for everybody.
func (w *world) judgePrivate(r *result) {
	if who := r.header.Get("X-For"); who != "" && (who != fmt.Sprint(r.N) || r.Kind != "cookie" && r.Kind != "authorized") {
		w.fail("private", r, "an answer for client %s", who)
	}
}
