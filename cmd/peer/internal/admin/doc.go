// Package admin shows a peer to its operator: health, readiness, metrics and
// status over HTTP, the same status as text, and the status page. It accepts commands
// such as purges.
//
// Start from [Handler]; [Client] is its client. Keep the listener private: everybody
// who reaches it can read everything, and [Access] says who may command.
package admin
