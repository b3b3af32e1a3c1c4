// Package workload reads request traces and generates synthetic ones, for the
// simulator and peer demo.
//
// A trace is text, plain, gzip or Zstandard, one request per line:
//
//	SECONDS CLIENT KEY SIZE
//
// SECONDS is a non-negative decimal number, CLIENT a word or "-" if the source names no clients, KEY a word, and SIZE
// the bytes of the body or 0 if the source has no sizes. A broken line is an error with the file, the line and the
// reason ([LineError]).
//
// An access log is in the Common Log Format or in Combined, with or without a virtual host; Squid's native log; or
// JSON of Caddy, of nginx, or of peer. What it is follows from its lines. Requests are its successful GETs; a size
// counts if the status is 200. Other lines are left out, odd ones by kind ([Trace.Summary]), and a log of which more
// than half is in another format is refused. A line that can be read in two ways is not used, so that nobody can
// choose the status and size of a request.
//
// Start from [ReadFile] or [Synthetic]. A [Trace] must not be changed once it is
// shared.
package workload
