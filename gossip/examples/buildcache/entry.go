package main

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
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

// Keys sign entries, and check them. A machine without the private key can only check.
type Keys struct {
	Public  ed25519.PublicKey
	private ed25519.PrivateKey // nil = none
}

// KeysOf returns the keys of a secret.
func KeysOf(secret []byte) (Keys, error) {
	seed, err := hkdf.Key(sha256.New, secret, nil, "summarycache buildcache entries 1", ed25519.SeedSize)
	if err != nil {
		return Keys{}, err
	}
	private := ed25519.NewKeyFromSeed(seed)
	return Keys{private.Public().(ed25519.PublicKey), private}, nil
}

// text returns what is signed of an entry: the name of its action and the fields. A name has no space.
func (e entry) text(name string) string {
	return fmt.Sprintf("%s %s %d %d", name, e.sum, e.size, e.made.Unix())
}

// seal returns the entry of an action as it is stored.
func (k Keys) seal(name string, e entry) string {
	_, fields, _ := strings.Cut(e.text(name), " ")
	return fields + " " + base64.RawStdEncoding.EncodeToString(ed25519.Sign(k.private, []byte(e.text(name))))
}

var errUnsigned = errors.New("the entry has no valid signature")

// open returns the entry of an action that was stored as text, if its signature is right.
func (k Keys) open(name, text string) (e entry, err error) {
	var digits, signed string
	var made int64
	if _, err := fmt.Sscanf(text, "%s %d %d %s", &digits, &e.size, &made, &signed); err != nil {
		return e, errUnsigned
	}
	var ok bool
	e.sum, ok = parseSum(digits)
	e.made = time.Unix(made, 0)
	signature, err := base64.RawStdEncoding.DecodeString(signed)
	if !ok || err != nil || !ed25519.Verify(k.Public, []byte(e.text(name)), signature) {
		return e, errUnsigned
	}
	return e, nil
}
