// Package demo runs a whole cluster in one process, puts a workload through it
// and tells what came of it.
//
// Nothing is simulated: an origin and every peer listen on loopback, requests
// and gossip go through sockets, objects lie on disk, and each body is checked
// against its URL. Start from [Run].
package demo
