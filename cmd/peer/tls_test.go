package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/peertls/certtest"
)

// Peers with certificates send each other requests over TLS, and none to peers without.
func TestTLSBetweenPeers(t *testing.T) {
	s := newSite(t, 3, 1000)
	authority := certtest.New(t)
	secret := write(t, "secret", "0123456789abcdef")
	flags := func(name string, join ...string) []string {
		cert, key := authority.Peer(name, time.Now().Add(time.Hour))
		args := local(t, name, "--origin", s.url, "--secret-file", secret, "--tls-cert", cert, "--tls-key", key, "--tls-ca", authority.File)
		if len(join) > 0 {
			args = append(args, "--join", join[0])
		}
		return args
	}
	a := inProcess(t, flags("a"))
	b := inProcess(t, flags("b", a.gossip))
	c := inProcess(t, local(t, "c", "--origin", s.url, "--secret-file", secret, "--join", a.gossip))
	knows := func(p started, name string, objects uint64) func() bool {
		return func() bool {
			st, err := admin.Client(p.admin).Status(t.Context())
			for _, m := range st.Members {
				if m.Name == name && m.Current && m.Keys == objects {
					return err == nil
				}
			}
			return false
		}
	}
	s.fill(t, a.listen, 0, 1)
	eventually(t, time.Minute, "b knows what a has", knows(b, "a", 1))
	if status, err := s.get(t.Context(), b.listen, object(0)); err != nil || !strings.HasPrefix(status, "a; hit") {
		t.Errorf("over TLS: %s, %v", status, err)
	}
	s.fill(t, c.listen, 2, 3)
	eventually(t, time.Minute, "b knows what c has", knows(b, "c", 1))
	if status, err := s.get(t.Context(), b.listen, object(2)); err != nil || !strings.HasPrefix(status, "b; fwd=uri-miss") {
		t.Errorf("a sibling without a certificate: %s, %v", status, err)
	}
	if st := must(admin.Client(b.admin).Status(t.Context())); st.Traffic.SiblingErrors != 1 || st.Traffic.SiblingHits != 1 {
		t.Errorf("b counts %d errors and %d hits of siblings, want 1 and 1", st.Traffic.SiblingErrors, st.Traffic.SiblingHits)
	}
	if text := words(t, 0, "purge", object(0), "--everywhere", "--admin", b.admin); !strings.Contains(text, "a - done") || !strings.Contains(text, "c - done") {
		t.Errorf("purge: %s", text)
	}
}

func TestCertificatesThatAreNone(t *testing.T) {
	authority := certtest.New(t)
	cert, key := authority.Peer("a", time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"one file":     {[]string{"--name", "a", "--tls-cert", cert}, "--tls-key is needed"},
		"another name": {[]string{"--name", "b", "--tls-cert", cert, "--tls-key", key, "--tls-ca", authority.File}, "other peers would refuse"},
		"no file":      {[]string{"--name", "a", "--tls-cert", cert, "--tls-key", key, "--tls-ca", filepath.Join(t.TempDir(), "x")}, "no such file"},
		"good":         {[]string{"--name", "a", "--tls-cert", cert, "--tls-key", key, "--tls-ca", authority.File}, "The configuration is good."},
	} {
		code, stdout, stderr := call(t, append([]string{"validate"}, c.args...)...)
		if (code == 0) != (name == "good") || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: %d, %s, want %q", name, code, fmt.Sprint(stdout, stderr), c.want)
		}
	}
}
