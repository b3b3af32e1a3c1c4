package caddy

import (
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/summarycache/summarycache/gossip/sibling"
)

// An object is a response with status 200.
type object struct {
	header        http.Header
	body          []byte
	born, expires time.Time
}

var lifetime = regexp.MustCompile(`^public, max-age=(\d{1,9})(, immutable)?$`)

// newObject makes an object of a response that may be kept.
func newObject(h http.Header, body []byte) (o object, ok bool) {
	m := lifetime.FindStringSubmatch(h.Get("Cache-Control"))
	if m == nil || h.Get("Vary") != "" || h.Get("Set-Cookie") != "" {
		return o, false
	}
	age, _ := strconv.Atoi(h.Get("Age"))
	seconds, _ := strconv.Atoi(m[1])
	o = object{header: h.Clone(), body: body, born: time.Now().Add(-time.Duration(age) * time.Second)}
	o.header.Del("Cache-Status") // of the one that it came from
	o.expires = o.born.Add(time.Duration(seconds) * time.Second)
	return o, time.Now().Before(o.expires)
}

func (h *Handler) write(w http.ResponseWriter, o object) error {
	for name, lines := range o.header {
		w.Header()[name] = lines
	}
	w.Header().Set("Age", strconv.Itoa(int(time.Since(o.born).Seconds())))
	sibling.MarkHit(w.Header(), h.Name)
	_, err := w.Write(o.body)
	return err
}
