package secrets

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
)

// Packets are sealed with a synthetic initialization vector: the tag of the plaintext is also the
// nonce. Equal packets have equal ciphertexts; there is no random nonce whose repetition would reveal
// anything.
const (
	SealedByte = 0xf5 // first byte of a sealed packet
	tagBytes   = 12
	SealBytes  = 1 + tagBytes // added to the length
)

// A packetSeal seals packets under one secret.
type packetSeal struct {
	key   []byte // of tags
	block cipher.Block
}

func newPacketSeal(tagKey, packetKey []byte) (packetSeal, error) {
	block, err := aes.NewCipher(packetKey)
	return packetSeal{tagKey, block}, err
}

func (s packetSeal) tag(body []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write(body)
	return h.Sum(nil)[:tagBytes]
}

// crypt encrypts or decrypts a packet with its tag.
func (s packetSeal) crypt(dst, src, tag []byte) {
	var counter [aes.BlockSize]byte
	copy(counter[:], tag)
	cipher.NewCTR(s.block, counter[:]).XORKeyStream(dst, src)
}

func (s packetSeal) seal(body []byte) []byte {
	tag := s.tag(body)
	out := append(append(make([]byte, 0, SealBytes+len(body)), SealedByte), tag...)
	out = append(out, body...)
	s.crypt(out[SealBytes:], body, tag)
	return out
}

// open returns the body of a packet; ok is false if it was not sealed under this secret.
func (s packetSeal) open(b []byte) (body []byte, ok bool) {
	if len(b) <= SealBytes || b[0] != SealedByte {
		return nil, false
	}
	body, tag := make([]byte, len(b)-SealBytes), b[1:SealBytes]
	s.crypt(body, b[SealBytes:], tag)
	return body, hmac.Equal(s.tag(body), tag)
}
