// Package origin is a web server for tests and demonstrations whose bodies can be verified.
//
// The bytes of an object are a function of its request target, so that a client can verify a body from
// any cache ([Check]). Objects are public and fresh for a day. Ranges, conditional requests and HEAD
// are supported.
package origin
