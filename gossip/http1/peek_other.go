//go:build !unix

package http1

import "syscall"

const canPeek = false

func peek(syscall.RawConn) arrival { return itsEnd }
