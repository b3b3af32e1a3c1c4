// Package health detects parts of a program that make no progress.
//
// A part marks the beginning and the end of each unit of work on a [Heartbeat]. A [Watchdog] checks
// all heartbeats: a part hangs if it has work and has ended no unit for longer than the limit. A part
// without work is healthy, however long it has been idle. [Watchdog.Probe] watches something that has
// no units of its own, such as a lock, by regular trials.
//
// A unit that fails counts as ended: the package does not judge whether work succeeds.
package health
