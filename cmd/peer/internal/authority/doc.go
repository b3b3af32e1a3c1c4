// Package authority decides who may change something at a peer, and who may use a forward proxy.
//
// An address alone is no authority: whoever reaches a proxy on this machine comes from loopback. An operator opens the
// peer's Unix socket, which the mode of its file guards, or presents a token. A PURGE may also come from networks that
// were named for it. What shows the trace of a proxy that was not named is refused whatever else it shows.
//
// Start from [Operators]. Its method Decide serves the admin port, PURGE, and the clients of a forward proxy.
package authority
