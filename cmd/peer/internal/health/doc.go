// Package health tells whether the parts of a program get on with their work.
//
// A part marks the begin and the end of each unit of work on a [Heartbeat]. A
// [Watchdog] looks at all heartbeats: a part that is at work and has not ended a
// unit for longer than the watchdog's limit hangs. A part without work is well,
// however long it has been idle. What has no units of its own, such as a lock, is
// tried now and then by [Watchdog.Probe].
//
// It does not tell whether work succeeds: an error is an end like any other.
package health
