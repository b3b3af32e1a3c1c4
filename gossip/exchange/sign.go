package exchange

import (
	"crypto/ed25519"
	"errors"
)

// ErrForged: a body without the signature of its origin, although that signs.
var ErrForged = errors.New("the origin's signature is missing or wrong")

const signatureBytes = ed25519.SignatureSize

// signContext prevents signatures of heads from being valid for anything else.
const signContext = "summarycache head 1"

// sign returns the signature of h; nil without a key.
func sign(key ed25519.PrivateKey, h Head) []byte {
	if len(key) != ed25519.PrivateKeySize {
		return nil
	}
	return ed25519.Sign(key, h.append([]byte(signContext)))
}

// verify checks a signature. An empty key means that the origin does not sign.
func verify(key ed25519.PublicKey, h Head, signature []byte) error {
	if len(key) == 0 {
		return nil
	}
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, h.append([]byte(signContext)), signature) {
		return ErrForged
	}
	return nil
}
