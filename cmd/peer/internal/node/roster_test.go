package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/limitlog"
)

func TestRoster(t *testing.T) {
	members := []gossip.Member{
		{Name: "b", Alive: true, Addr: "10.0.0.2:7946", Service: "10.1.0.2:3128"},
		{Name: "c", Alive: true, Addr: "[fd00::3]:7946", Service: "c.example:3128"},
		{Name: "d", Addr: "10.0.0.4:7946", Service: "10.0.0.4:3128"},
	}
	certificate := func(name string) *tls.ConnectionState {
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{DNSNames: []string{name}}}}
	}
	for name, tt := range map[string]struct {
		secure      bool
		claim, from string
		tls         *tls.ConnectionState
		want        error
	}{
		"a member":                    {false, "b", "10.0.0.2:40000", nil, nil},
		"by its service's address":    {false, "b", "10.1.0.2:40000", nil, nil},
		"with an IPv6 address":        {false, "c", "[fd00::3]:40000", nil, nil},
		"an IPv4 address in IPv6":     {false, "b", "[::ffff:10.0.0.2]:40000", nil, nil},
		"another member's address":    {false, "b", "[fd00::3]:40000", nil, nil},
		"somewhere else":              {false, "b", "10.0.0.9:40000", nil, errElsewhere},
		"a dead member":               {false, "d", "10.0.0.4:40000", nil, errDead},
		"a dead member's address":     {false, "b", "10.0.0.4:40000", nil, errElsewhere},
		"no member":                   {false, "edge", "10.0.0.9:40000", nil, nil},
		"no address":                  {false, "b", "pipe", nil, errElsewhere},
		"a certificate":               {true, "b", "10.0.0.9:40000", certificate("b"), nil},
		"another's certificate":       {true, "b", "10.0.0.2:40000", certificate("c"), errOtherName},
		"no certificate":              {true, "b", "10.0.0.2:40000", nil, errNoCertificate},
		"a dead member's certificate": {true, "d", "10.0.0.4:40000", certificate("d"), errDead},
		"no member, without TLS":      {true, "edge", "10.0.0.9:40000", nil, nil},
	} {
		s := &roster{members: func() []gossip.Member { return members }, secure: tt.secure, log: slog.New(slog.DiscardHandler)}
		if err := s.admit(&http.Request{RemoteAddr: tt.from, TLS: tt.tls}, tt.claim); !errors.Is(err, tt.want) {
			t.Errorf("%s: admit = %v, want %v", name, err, tt.want)
		}
	}
}

// A roster follows the cluster without a call of gossip for each request, and limits its warnings.
func TestRosterIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		read, alive := 0, false
		s := &roster{log: slog.New(limitlog.New(slog.NewTextHandler(&log, nil))), members: func() []gossip.Member {
			read++
			return []gossip.Member{{Name: "b", Alive: alive, Addr: "10.0.0.2:7946"}}
		}}
		ask := func() error { return s.admit(&http.Request{RemoteAddr: "10.0.0.2:40000"}, "b") }
		for range 1000 {
			ask()
		}
		if read != 1 || ask() == nil || strings.Count(log.String(), "refused a request") != limitlog.AtOnce {
			t.Errorf("read %d times; %s", read, log.String())
		}
		alive = true
		time.Sleep(rosterAtLeast)
		if err := ask(); err != nil || read != 2 {
			t.Errorf("of a member that has come: %v, read %d times", err, read)
		}
		for range 100 {
			ask()
			time.Sleep(20 * time.Millisecond)
		}
		if read > 5 {
			t.Errorf("read %d times in two seconds", read)
		}
	})
}

// A stranger that uses a member's name gets a short answer that says why it is refused, even for
// stored objects. Under its own name, or without one, it is treated like any client.
func TestStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual(t, 2, map[string]int64{"/x": 10})
		defer v.stop()
		pause(3 * time.Second)
		if err := v.get(0, "/x"); err != nil {
			t.Fatal(err)
		}
		ask := func(via string) (int, string, string) {
			r, _ := http.NewRequest("GET", "http://10.0.0.1:80/x", nil)
			r.Header.Set("Cache-Control", "only-if-cached")
			r.Header["Via"] = []string{via}
			resp, err := v.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, resp.Header.Get("Cache-Status"), string(body)
		}
		if code, status, body := ask("1.1 edge, 1.1 p1"); code != 403 || status != "p0; detail=not-a-sibling" ||
			body != "p0: the request names a sibling that did not send it.\n" {
			t.Errorf("in p1's name: %d, %q, %q", code, status, body)
		}
		for _, via := range []string{"1.1 edge", "1.1 p1, 1.1 edge (squid/5.7)"} {
			if code, status, _ := ask(via); code != 200 || !strings.HasPrefix(status, "p0; hit") {
				t.Errorf("from %s: %d, %s", via, code, status)
			}
		}
		if c := v.nodes[0].Status().Traffic; c.RefusedAskers != 1 || c.ServedToSiblings != 2 || c.ClientErrors != 1 {
			t.Errorf("%+v", c)
		}
		pause(5 * time.Second)
		if err := v.get(1, "/x"); err != nil {
			t.Error(err)
		}
		if c := v.nodes[1].Status().Traffic; c.SiblingHits != 1 {
			t.Errorf("the real p1: %s", fmt.Sprintf("%+v", c))
		}
	})
}
