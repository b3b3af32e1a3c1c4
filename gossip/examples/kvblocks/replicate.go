package kvblocks

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/summarycache/summarycache/digest"
)

var client = http.Client{Timeout: 2 * time.Second}

// Remote returns the Handle of the router at a URL, for [Digest.Give].
func Remote(router string) func(name string, message []byte) (since digest.Version, lacks bool, err error) {
	return func(name string, message []byte) (since digest.Version, lacks bool, err error) {
		resp, err := client.Post(router+"?digest="+url.QueryEscape(name), "", bytes.NewReader(message))
		if err != nil {
			return since, false, err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
		switch {
		case err == nil && resp.StatusCode == http.StatusConflict:
			since, err = digest.ParseVersion(string(answer))
			return since, err == nil, err
		case err == nil && resp.StatusCode != http.StatusOK:
			err = fmt.Errorf("kvblocks: %s: %s %s", router, resp.Status, answer)
		}
		return since, false, err
	}
}

// ServeHTTP takes what [Remote] sends. What came to /publish, from a worker, goes on to the other routers.
func (r *Router) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	name := q.URL.Query().Get("digest")
	message, err := io.ReadAll(http.MaxBytesReader(w, q.Body, mostBytes))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch since, lacks, err := r.Handle(name, message); {
	case lacks:
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, since.String())
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case q.URL.Path == "/publish" && r.Node != nil:
		r.relay(name, message)
	}
}

// relay passes a message on. A router that does not answer learns with a later one what it lacks.
func (r *Router) relay(name string, message []byte) {
	r.mu.Lock()
	replica := r.replicas[name]
	r.mu.Unlock()
	if replica == nil {
		return // forgotten
	}
	d := Digest{name, message, func(digest.Version) []byte { return replica.Filter().AppendTo(nil) }}
	var all sync.WaitGroup
	for _, m := range r.Node.Members() {
		if m.Alive && m.Service != "" {
			all.Go(func() { d.Give(Remote("http://" + m.Service + "/relay")) })
		}
	}
	all.Wait()
}
