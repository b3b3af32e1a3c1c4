//go:build !unix

package main

import "os"

// replacing is empty: this system cannot replace the program of a process.
var replacing []os.Signal
