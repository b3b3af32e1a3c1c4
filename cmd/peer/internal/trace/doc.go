// Package trace reads request traces and makes synthetic ones.
//
// A trace is text, plain or gzip, one request a line:
//
//	SECONDS CLIENT KEY SIZE
//
// SECONDS is a non-negative decimal number, CLIENT a word or "-" if the source
// names no clients, KEY a word, SIZE the body's bytes or 0 if the source has no
// sizes. The four are separated by single blanks. Anything else is refused with
// the file, the line and the reason ([LineError]).
//
// Start from [ReadFile] or [Synthetic]; [Trace.Deal] spreads the requests over
// proxies. A Trace must not be changed once it is shared.
package trace
