package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/file"
	"github.com/summarycache/summarycache/cmd/peer/internal/peertls"
)

const (
	minSecret  = 16
	maxSecrets = 4 // limit of gossip
	maxSecret  = 4 << 10

	makeSome = " (head -c 32 /dev/urandom | base64 makes some)" // without a file: that which was named may be another
)

// readSecrets reads the cluster's secrets.
func (c *checker) readSecrets() {
	if c.SecretFile == "" {
		return
	}
	data, err := file.Text(c.SecretFile, maxSecret)
	if err != nil {
		c.fail("secret-file", c.SecretFile, errors.New("cannot be read: "+reason(err)))
		return
	}
	if info, err := os.Stat(c.SecretFile); err == nil {
		c.SecretShared = info.Mode().IsRegular() && info.Mode()&0o007 != 0 && runtime.GOOS != "windows"
	}
	c.splitSecrets(data)
}

// splitSecrets reads the secrets of a file, one per line: the first is used, the others are also
// accepted. Empty lines are skipped, and blanks around a secret are no part of it: nobody sees them.
func (c *checker) splitSecrets(data []byte) {
	fail := func(format string, args ...any) {
		c.fail("secret-file", c.SecretFile, fmt.Errorf(format, args...))
	}
	var all [][]byte
	number, where := 0, ""
	for line := range bytes.Lines(data) {
		if number++; number > 1 {
			where = fmt.Sprintf(" in line %d", number)
		}
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
			continue
		case len(line) < minSecret:
			fail("holds %d bytes%s, want at least %d"+makeSome, len(line), where, minSecret)
		case slices.ContainsFunc(all, func(other []byte) bool { return bytes.Equal(line, other) }):
			fail("repeats a secret%s", where)
		}
		all = append(all, line)
	}
	switch {
	case len(all) == 0:
		fail("holds 0 bytes, want at least %d"+makeSome, minSecret)
		return
	case len(all) > maxSecrets:
		fail("holds %d secrets, want at most %d, one per line", len(all), maxSecrets)
	}
	c.Secret, c.AcceptSecrets = all[0], all[1:]
}

// readPeerTLS loads the certificates for TLS between peers: all three files or none.
func (c *checker) readPeerTLS() {
	files := peertls.Files{Cert: c.TLSCert, Key: c.TLSKey, CA: c.TLSCA}
	if files == (peertls.Files{}) {
		return
	}
	for _, f := range []struct{ setting, file string }{{"tls-cert", files.Cert}, {"tls-key", files.Key},
		{"tls-ca", files.CA}} {
		if f.file == "" {
			c.fail(f.setting, "", errors.New("is needed: TLS between peers needs --tls-cert, --tls-key and --tls-ca"))
		}
	}
	if files.Cert == "" || files.Key == "" || files.CA == "" {
		return
	}
	identity, err := peertls.Load(c.Name, files)
	if err != nil {
		c.fail("tls-cert", c.TLSCert, fmt.Errorf("cannot be used: %w", err))
		return
	}
	c.PeerTLS = identity
}

// ReadToken returns the token in a file; "" if path is "".
func ReadToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := file.Text(path, maxSecret)
	if err != nil {
		return "", errors.New("cannot be read: " + reason(err))
	}
	token := strings.TrimSpace(string(b))
	if len(token) < minSecret {
		return "", fmt.Errorf("holds %d bytes, want at least %d", len(token), minSecret)
	}
	return token, nil
}
