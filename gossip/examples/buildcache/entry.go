package main

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// An entry says what an action has made, and when.
type entry struct {
	sum  sum
	size int64
	made time.Time
}

// A sum is the SHA-256 of an output.
type sum [sha256.Size]byte

func (s sum) String() string { return hex.EncodeToString(s[:]) }

// parseSum returns the sum that is written as 64 lower-case hexadecimal digits.
func parseSum(text string) (s sum, ok bool) {
	n, err := hex.Decode(s[:], []byte(text))
	return s, err == nil && n == len(s) && s.String() == text
}

// A Key signs entries, and checks them.
type Key []byte

// KeyOf returns the key that follows from the secret of a cluster.
func KeyOf(secret []byte) (Key, error) {
	return hkdf.Key(sha256.New, secret, nil, "summarycache buildcache entries 1", sha256.Size)
}

// signature returns that of an action's name and the fields of its entry. A name has no space.
func (k Key) signature(name, fields string) string {
	mac := hmac.New(sha256.New, k)
	fmt.Fprintf(mac, "%s %s", name, fields)
	return hex.EncodeToString(mac.Sum(nil))
}

// seal returns the entry of an action as it is stored.
func (k Key) seal(name string, e entry) string {
	fields := fmt.Sprintf("%s %d %d", e.sum, e.size, e.made.Unix())
	return fields + " " + k.signature(name, fields)
}

var errUnsigned = errors.New("the entry has no valid signature")

// open returns the entry of an action that was stored as text, if its signature is right.
func (k Key) open(name, text string) (e entry, err error) {
	end := max(0, strings.LastIndexByte(text, ' '))
	if fields := text[:end]; !hmac.Equal([]byte(text[end:]), []byte(" "+k.signature(name, fields))) {
		return e, errUnsigned
	}
	var digits string
	var made int64
	if _, err := fmt.Sscanf(text, "%s %d %d", &digits, &e.size, &made); err != nil {
		return e, err
	}
	e.made = time.Unix(made, 0)
	var ok bool
	if e.sum, ok = parseSum(digits); !ok {
		return e, errUnsigned
	}
	return e, nil
}
