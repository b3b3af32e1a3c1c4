// Package secrets derives all keys of a cluster from its secret, and authenticates and encrypts the packets and
// streams between peers by them (PROTOCOL.md 2.1). Start with [New].
package secrets
