// Package admin serves the operator of a peer: health, readiness, metrics and status over HTTP, the
// same status as text, the status page, and commands such as purges.
//
// Start from [Handler]; [Client] is its client. Keep the listener private: everybody
// who reaches it can read everything. [Access] says who may send commands.
package admin
