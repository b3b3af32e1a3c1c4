// Package peertls secures HTTP between peers by TLS 1.3. Both ends have a certificate from the
// cluster's own authority. A client checks that the server's certificate is for that peer's name in
// the cluster. A server checks that the authority signed the client's certificate.
//
// Peers and clients use the same port. [Listen] distinguishes TLS from plain connections by the first
// byte. A peer with certificates sends no plain requests to other peers.
//
// Start from [Load].
package peertls
