package gossip

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
)

// Packets to peers of version 2 are sealed with a synthetic initialization vector: the
// tag of what is sealed takes the place of a nonce too. Equal packets look equal, and
// nothing is lost where a random nonce would come twice.
const (
	sealedShort = 0xf5 // their first byte
	tagBytes    = 12
	shortBytes  = 1 + tagBytes
)

// A shortSeal seals such packets under one secret.
type shortSeal struct {
	key   []byte // of tags
	block cipher.Block
}

func newShortSeal(tagKey, packetKey []byte) (shortSeal, error) {
	block, err := aes.NewCipher(packetKey)
	return shortSeal{tagKey, block}, err
}

func (s shortSeal) tag(body []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write(body)
	return h.Sum(nil)[:tagBytes]
}

// crypt encrypts or decrypts what goes with a tag.
func (s shortSeal) crypt(dst, src, tag []byte) {
	var counter [aes.BlockSize]byte
	copy(counter[:], tag)
	cipher.NewCTR(s.block, counter[:]).XORKeyStream(dst, src)
}

func (s shortSeal) seal(body []byte) []byte {
	tag := s.tag(body)
	out := append(append(make([]byte, 0, shortBytes+len(body)), sealedShort), tag...)
	out = append(out, body...)
	s.crypt(out[shortBytes:], body, tag)
	return out
}

// open returns what a packet that begins with sealedShort holds, behind as many bytes of
// prefix; ok is false if it is not sealed under this secret.
func (s shortSeal) open(b, prefix []byte) (body []byte, ok bool) {
	if len(b) < shortBytes {
		return nil, false
	}
	out := append(make([]byte, 0, len(prefix)+len(b)), prefix...)
	out = append(out, b[shortBytes:]...)
	body = out[len(prefix):]
	s.crypt(body, body, b[1:shortBytes])
	return out, hmac.Equal(s.tag(body), b[1:shortBytes])
}

// stripped returns a packet without memberlist's label.
func stripped(packet []byte) []byte {
	if isDatagram(packet) {
		return packet
	}
	return bytes.TrimPrefix(packet, plainHeader)
}

// labelled is the inverse of stripped, for a body that has room for the label before it.
func labelled(out []byte) []byte {
	if body := out[len(plainHeader):]; isDatagram(body) {
		return body
	}
	return out
}
