// Package origin is a web server whose every body can be checked by its URL.
//
// The bytes of an object follow from its request target alone, so that a client can check a
// body from any cache ([Check]). Objects are public and fresh for a day; ranges, conditional
// requests and HEAD work.
package origin
