// Package demo runs a whole cluster in one process, sends it a workload and reports the result.
//
// Nothing is simulated: an origin and all peers listen on loopback, requests and gossip go through
// sockets, objects are stored on disk, and each body is compared with its URL. Start from [Run].
package demo
