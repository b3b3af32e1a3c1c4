// Package peertls secures what peers say to each other over HTTP: TLS 1.3, both
// ends with a certificate of the cluster's own authority, from files. Who asks
// checks that the certificate of who answers is for that peer's name in the
// cluster; who answers, that the authority vouches for who asks.
//
// Peers and clients come to one port: [Listen] tells them apart by the first byte
// of a connection, and leaves plain connections plain. Who has certificates never
// asks a sibling without.
//
// Start from [Load].
package peertls
