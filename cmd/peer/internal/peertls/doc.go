// Package peertls secures what peers say to each other over HTTP: TLS 1.3, both
// ends with a certificate of the cluster's own authority, from files. A client
// checks that the server's certificate is for that peer's name in the cluster; a
// server, that the authority vouches for the client.
//
// Peers and clients come to one port: [Listen] tells them apart by the first byte
// of a connection, and leaves plain connections plain. A peer with certificates
// never asks a sibling without.
//
// Start from [Load].
package peertls
