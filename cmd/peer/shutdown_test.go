package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// A peer that is stopped finishes its requests, leaves the cluster, and causes no errors elsewhere.
func TestGracefulStop(t *testing.T) {
	half, rest := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		io.WriteString(w, "first ")
		w.(http.Flusher).Flush()
		close(half)
		<-rest
		io.WriteString(w, "second")
	}))
	defer slow.Close()
	release := sync.OnceFunc(func() { close(rest) })
	defer release() // or Close waits
	other := inProcess(t, local(t, "other"))

	ctx, stop := context.WithCancel(t.Context())
	var out, errs lockedBuffer
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, local(t, "stopped", "--origin", slow.URL, "--join", other.gossip, "--drain", "20s"), &out, &errs)
	}()
	var peer started
	eventually(t, time.Minute, "the peer is up", func() (up bool) { peer, up = parseStarted(out.String()); return up })
	// A peer says farewell to those that it knows, and those that know it hear it.
	knows := func(at, name string) bool {
		s, err := admin.Client(at).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Members) == 1 && s.Members[0].Name == name && s.Members[0].State == "alive"
	}
	eventually(t, time.Minute, "they know each other", func() bool { return knows(other.admin, "stopped") && knows(peer.admin, "other") })

	answer, err := http.Get("http://" + peer.listen + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	<-half
	stop()
	eventually(t, time.Minute, "the peer says that it is draining", func() bool {
		ready, err := http.Get("http://" + peer.admin + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		ready.Body.Close()
		return ready.StatusCode == http.StatusServiceUnavailable
	})
	var seen []admin.Member
	defer func() { t.Logf("the other peer knows %+v", seen) }()
	eventually(t, time.Minute, "the other peer knows that it left", func() bool {
		s, err := admin.Client(other.admin).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen = s.Members
		return len(seen) == 1 && seen[0].State == "left"
	})
	select {
	case err := <-ended:
		t.Fatalf("the peer ended with a request under way: %v", err)
	default:
	}
	release()
	body, err := io.ReadAll(answer.Body)
	if err != nil || string(body) != "first second" {
		t.Errorf("the request under way got %q, %v", body, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("peer run = %v\n%s", err, errs.String())
	}
}
