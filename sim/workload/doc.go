// Package workload reads request traces and generates synthetic ones, for the
// simulator and peer demo.
//
// A trace is text, plain or gzip, one request per line, in one of three formats:
//
//	SECONDS CLIENT KEY SIZE
//	Squid's native access log
//	the Common Log Format
//
// In the first, SECONDS is a non-negative decimal number, CLIENT a word or "-" if the source
// names no clients, KEY a word, and SIZE the bytes of the body or 0 if the source has no sizes.
// From access logs only successful GETs are read. A broken line is an error with the file, the
// line and the reason ([LineError]).
//
// Start from [ReadFile] or [Synthetic]. A [Trace] must not be changed once it is
// shared.
package workload
