//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A pipe into which nobody writes is refused by name wherever a setting names a file, and keeps nobody waiting. One with a writer is
// read, since shells make such files: --config <(...).
func TestPipes(t *testing.T) {
	pipe := func() string {
		path := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p, plain := pipe(), write(t, "plain", "x")
	site := write(t, "sites.yaml", "sites:\n- origins: ['https://x']\n  ca: "+p+"\n- hosts: [a]\n  origins: ['https://x']\n  cert: "+p+"\n  key: "+plain+"\n")
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"--config", p}, []string{"--config"}},
		{[]string{"--secret-file", p}, []string{"--secret-file"}},
		{[]string{"--admin-token-file", p}, []string{"--admin-token-file"}},
		{[]string{"--tls-cert", plain, "--tls-key", p, "--tls-ca", plain}, []string{"--tls-cert"}},
		{[]string{"--tls-cert", plain, "--tls-key", plain, "--tls-ca", p}, []string{"--tls-cert"}},
		{[]string{"--https", "127.0.0.1:443", "--https-cert", plain, "--https-key", p}, []string{"--https-cert"}},
		{[]string{"--config", site}, []string{site + ":3: ca", site + ":6: cert"}},
	} {
		_, _, err := load(t, tt.args...)
		for _, want := range append(tt.want, "nobody writes into this pipe") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Load(%q) = %v, want %q", tt.args, err, want)
			}
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.WriteString("name: piped\n")
	w.Close()
	if c, _, err := load(t, "--config", "/dev/fd/"+strconv.Itoa(int(r.Fd()))); err != nil || c.Name != "piped" {
		t.Errorf("Load of a pipe with a writer = %q, %v", c.Name, err)
	}
}
