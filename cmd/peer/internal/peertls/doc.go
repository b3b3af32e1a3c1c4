// Package peertls secures HTTP between peers: TLS 1.3, with a certificate of the cluster's
// own authority at both ends, from files. A client checks that the server's certificate is
// for that peer's name in the cluster. A server checks that the authority signed the
// client's certificate.
//
// Peers and clients use the same port. [Listen] distinguishes TLS from plain connections
// by their first byte. A peer with certificates never asks a sibling without.
//
// Start from [Load].
package peertls
