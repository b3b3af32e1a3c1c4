// Package health tells whether the parts of a program make progress.
//
// A part marks the beginning and the end of each unit of work on a [Heartbeat]. A
// [Watchdog] checks all heartbeats: a part hangs if it has work and has ended no
// unit for longer than the watchdog's limit. A part without work is healthy,
// however long it has been idle. [Watchdog.Probe] regularly tries what has no units of
// its own, such as a lock.
//
// The package does not tell whether work succeeds: a unit that fails has ended.
package health
