package config

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// parsePrefix reads a network, or a single address as one.
func parsePrefix(s string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(s); err == nil {
		return ip.Prefix(ip.BitLen())
	}
	return netip.ParsePrefix(s)
}

// clients reads the addresses and networks of a setting.
func (c *checker) clients(setting string, list []string) (out []netip.Prefix) {
	for _, s := range list {
		p, err := parsePrefix(s)
		if err != nil {
			c.fail(setting, s, errors.New("is no address or network, such as 10.0.0.0/8"))
			continue
		}
		out = append(out, p.Masked())
	}
	return out
}

func (c *checker) connectPorts(list []string) (out []uint16) {
	for _, s := range list {
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			c.fail("connect-port", s, errors.New("is no port between 1 and 65535"))
			continue
		}
		out = append(out, uint16(n))
	}
	return out
}

func (c *checker) onOff(setting, s string) bool {
	if s != "on" && s != "off" && s != "" {
		c.fail(setting, s, errors.New("is neither on nor off"))
	}
	return s == "on"
}

// ReadToken returns the token in a file; "" if path is.
func ReadToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", errors.New("cannot be read: " + reason(err))
	}
	token := strings.TrimSpace(string(b))
	if len(token) < minSecret {
		return "", fmt.Errorf("holds %d bytes, want at least %d", len(token), minSecret)
	}
	return token, nil
}
