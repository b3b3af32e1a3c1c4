// Package admin is what a peer tells its operator: health, readiness, metrics
// and status over HTTP, and the same status as text.
//
// Start from [Handler]; [Fetch] is its client. The listener is meant for this
// machine and its keepers: nothing here asks who is calling.
package admin
