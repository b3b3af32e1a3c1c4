package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/summarycache/summarycache/cmd/peer/internal/peertls"
)

const (
	minSecret  = 16
	maxSecrets = 4 // that gossip takes
	maxSecret  = 4 << 10
)

// secrets reads the cluster's secrets, one a line: the first is used, the others
// are accepted. Empty lines are nothing.
func (c *checker) secrets(path string) (use []byte, accept [][]byte) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		c.fail("secret-file", path, errors.New("cannot be read: "+reason(err)))
		return nil, nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		c.fail("secret-file", path, errors.New("cannot be read: "+reason(err)))
		return nil, nil
	case len(data) > maxSecret:
		c.fail("secret-file", path, fmt.Errorf("holds more than %d bytes", maxSecret))
		return nil, nil
	}
	var all [][]byte
	number, where := 0, ""
	for line := range bytes.Lines(data) {
		if number++; number > 1 {
			where = fmt.Sprintf(" in line %d", number)
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) == 0:
			continue
		case len(line) < minSecret:
			c.fail("secret-file", path, fmt.Errorf("holds %d bytes%s, want at least %d: head -c 32 /dev/urandom | base64 > %s", len(line), where, minSecret, path))
		case slices.ContainsFunc(all, func(other []byte) bool { return bytes.Equal(line, other) }):
			c.fail("secret-file", path, fmt.Errorf("holds a secret again%s", where))
		}
		all = append(all, line)
	}
	switch {
	case len(all) == 0:
		c.fail("secret-file", path, fmt.Errorf("holds 0 bytes, want at least %d: head -c 32 /dev/urandom | base64 > %s", minSecret, path))
		return nil, nil
	case len(all) > maxSecrets:
		c.fail("secret-file", path, fmt.Errorf("holds %d secrets, want at most %d, one a line", len(all), maxSecrets))
	}
	return all[0], all[1:]
}

// peerTLS loads the certificates between peers: all three files or none.
func (c *checker) peerTLS(s *Settings, name string) *peertls.Identity {
	files := []struct{ setting, value string }{{"tls-cert", s.TLSCert}, {"tls-key", s.TLSKey}, {"tls-ca", s.TLSCA}}
	given := 0
	for _, f := range files {
		if f.value != "" {
			given++
		}
	}
	if given == 0 {
		return nil
	}
	for _, f := range files {
		if f.value == "" {
			c.fail(f.setting, "", errors.New("is needed: TLS between peers takes --tls-cert, --tls-key and --tls-ca"))
		}
	}
	if given < len(files) {
		return nil
	}
	identity, err := peertls.Load(name, peertls.Files{Cert: s.TLSCert, Key: s.TLSKey, CA: s.TLSCA})
	if err != nil {
		c.fail("tls-cert", s.TLSCert, fmt.Errorf("cannot be used: %w", err))
		return nil
	}
	return identity
}
