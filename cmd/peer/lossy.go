package main

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"
)

// hangs is how long a line of the log may take before those that follow are lost.
const hangs = time.Second

// A lossy writer passes lines on to one that may hang: a pipe whose reader has stopped, a terminal that is paused, a disk.
// A line that takes too long is waited for no more, and until it is written all others are lost. Nobody else waits.
type lossy struct {
	to    io.Writer
	lost  atomic.Int64
	turn  chan struct{}     // has a token while a line is being written
	tells func(lines int64) // is called when lines were lost and the next one was written; nil = not at all
}

func newLossy(to io.Writer) *lossy { return &lossy{to: to, turn: make(chan struct{}, 1)} }

// Write implements [io.Writer]. It returns no error: nobody could be told.
func (l *lossy) Write(p []byte) (int, error) {
	select {
	case l.turn <- struct{}{}:
	default:
		l.lost.Add(1)
		return len(p), nil
	}
	line, done := bytes.Clone(p), make(chan struct{})
	go func() {
		l.to.Write(line)
		if n := l.lost.Swap(0); n > 0 && l.tells != nil {
			go l.tells(n)
		}
		<-l.turn
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(hangs):
	}
	return len(p), nil
}
