// Package accesslog writes a line for each request that a peer answered.
//
// A [Log] collects lines in memory and writes them every second, or sooner when there are many, so
// that a request never waits for the disk. If the disk hangs, lines are dropped and counted. Start from
// [Open]; pass [Log.Observe] to [proxy.Config.Observe].
package accesslog

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
)

const (
	flushEvery = time.Second
	flushSize  = 64 << 10 // bytes of waiting lines that are written at once
	closeWait  = time.Second
	pipeWait   = 3 * time.Second
	reopenWait = 2*pipeWait + 2*time.Second // longer than for a pipe that is not read
	maxWaiting = 4 << 20                    // bytes of waiting lines beyond which lines are dropped
)

// A Log is an access log. It is safe for concurrent use.
type Log struct {
	path string
	json bool
	log  *slog.Logger

	mu      sync.Mutex
	lines   []byte
	lost    int
	second  int64      // the time of stamp
	stamp   []byte     // that time as text
	written sync.Mutex // held while writing; guards the next two
	spare   []byte     // the other buffer of lines
	to      io.Writer

	reopens sync.Mutex // held while reopening

	full chan struct{}
	stop chan struct{}
	done chan struct{}
}

// Open opens a log that appends to the file at path, which is made if missing; "-" = stdout. Lines are
// JSON, or the combined log format followed by four fields. Errors while writing go to log.
func Open(path string, json bool, stdout io.Writer, log *slog.Logger) (*Log, error) {
	l := &Log{path: path, json: json, log: log, to: stdout, full: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	if path != "-" {
		l.to = nil
		if err := l.Reopen(); err != nil {
			return nil, err
		}
	}
	go l.run()
	return l, nil
}

// Reopen writes the waiting lines and then opens the file at the path again, since log rotation may
// have moved the old file away. If that hangs, it returns an error after eight seconds, and goes on by itself.
func (l *Log) Reopen() error {
	if l.path == "-" {
		return nil
	}
	hangs := fmt.Errorf("the disk of %s hangs", l.path)
	if !l.reopens.TryLock() {
		return hangs
	}
	done := make(chan error, 1)
	go func() {
		defer l.reopens.Unlock()
		done <- l.reopen()
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(reopenWait):
		return hangs
	}
}

func (l *Log) reopen() error {
	l.written.Lock()
	defer l.written.Unlock()
	l.write() // first, so that the old file gets no lines once the new one exists
	// A pipe that nobody reads is an error, and not waited for.
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o640)
	if err != nil {
		return err
	}
	if old, ok := l.to.(*os.File); ok {
		old.Close()
	}
	l.to = f
	return nil
}

// Close writes the waiting lines and closes the file. If that hangs, it returns after a second.
func (l *Log) Close() error {
	close(l.stop)
	closed := make(chan error, 1)
	go func() {
		<-l.done
		l.flush()
		var err error
		if f, ok := l.to.(*os.File); ok && l.path != "-" {
			err = f.Close()
		}
		closed <- err
	}()
	select {
	case err := <-closed:
		return err
	case <-time.After(closeWait):
		l.log.Warn("lines of the access log are lost: writing them hangs")
		return nil
	}
}

func (l *Log) run() {
	defer close(l.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.full:
		case <-l.stop:
			return
		}
		l.flush()
	}
}

// flush writes the waiting lines.
func (l *Log) flush() {
	l.written.Lock()
	defer l.written.Unlock()
	l.write()
}

// write writes the waiting lines. The caller holds written.
func (l *Log) write() {
	l.mu.Lock()
	lines, lost := l.lines, l.lost
	l.lines = l.spare[:0]
	l.lost = 0
	l.mu.Unlock()
	l.spare = lines
	if lost > 0 {
		l.log.Warn("lines of the access log are lost: they cannot be written fast enough", "lines", lost)
	}
	if len(lines) == 0 || l.to == nil {
		return
	}
	if pipe, ok := l.to.(*os.File); ok {
		pipe.SetWriteDeadline(time.Now().Add(pipeWait)) // of a file that is none it is an error
	}
	if _, err := l.to.Write(lines); err != nil {
		l.log.Warn("cannot write the access log", "err", err)
	}
}

// Observe writes a line about a request.
func (l *Log) Observe(e proxy.Event) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) > maxWaiting {
		l.lost++
		return
	}
	if now.Unix() != l.second {
		l.second = now.Unix()
		if l.json {
			l.stamp = now.UTC().AppendFormat(l.stamp[:0], "2006-01-02T15:04:05Z")
		} else {
			l.stamp = now.AppendFormat(l.stamp[:0], "02/Jan/2006:15:04:05 -0700")
		}
	}
	if l.json {
		l.lines = appendJSON(l.lines, l.stamp, &e)
	} else {
		l.lines = appendCombined(l.lines, l.stamp, &e)
	}
	if len(l.lines) > flushSize {
		select {
		case l.full <- struct{}{}:
		default:
		}
	}
}

// appendCombined appends a line such as
//
//	192.0.2.7 - - [01/Jan/2027:12:00:00 +0000] "GET /x HTTP/1.1" 200 5 "-" "curl/8" local-hit - 0.000213 - "-"
//
// whose usual fields are followed by the outcome, the sibling that answered, the duration
// in seconds, the trace, and what Cache-Status says if it was no hit.
func appendCombined(b, stamp []byte, e *proxy.Event) []byte {
	r := e.Request
	b = orDash(b, e.Client)
	b = append(append(append(b, " - - ["...), stamp...), "] \""...)
	if r.Proto == "" {
		b = append(b, "-\" "...)
	} else {
		b = append(escape(b, r.Method, false), ' ')
		b = append(escape(b, proxy.Target(r), false), ' ')
		b = append(append(b, r.Proto...), "\" "...)
	}
	b = append(strconv.AppendInt(b, int64(e.Status), 10), ' ')
	b = append(strconv.AppendInt(b, e.Bytes, 10), " \""...)
	b = append(orDash(b, r.Header.Get("Referer")), "\" \""...)
	b = append(orDash(b, r.Header.Get("User-Agent")), "\" "...)
	b = append(append(b, e.Outcome.String()...), ' ')
	b = append(orDash(b, e.Peer), ' ')
	b = append(seconds(b, e.Duration), ' ')
	b = append(orDash(b, e.Trace), " \""...)
	return append(said(b, e), "\"\n"...)
}

func orDash(b []byte, s string) []byte {
	if s == "" {
		return append(b, '-')
	}
	return escape(b, s, false)
}

func appendJSON(b, stamp []byte, e *proxy.Event) []byte {
	r := e.Request
	b = append(append(append(b, `{"time":"`...), stamp...), '"')
	for _, f := range [...]struct{ name, value string }{
		{`,"client":"`, e.Client}, {`,"method":"`, r.Method}, {`,"host":"`, r.Host}, {`,"uri":"`, proxy.Target(r)}, {`,"protocol":"`, r.Proto},
		{`,"referer":"`, r.Header.Get("Referer")}, {`,"user_agent":"`, r.Header.Get("User-Agent")},
		{`,"outcome":"`, e.Outcome.String()}, {`,"sibling":"`, e.Peer}, {`,"trace":"`, e.Trace},
	} {
		if f.value != "" {
			b = append(escape(append(b, f.name...), f.value, true), '"')
		}
	}
	if e.Said.Fwd != "" || e.Said.Detail != "" {
		b = append(said(append(b, `,"cache_status":"`...), e), '"')
	}
	b = strconv.AppendInt(append(b, `,"status":`...), int64(e.Status), 10)
	b = strconv.AppendInt(append(b, `,"bytes":`...), e.Bytes, 10)
	b = seconds(append(b, `,"seconds":`...), e.Duration)
	if e.Stale {
		b = append(b, `,"stale":true`...)
	}
	if e.Broken {
		b = append(b, `,"broken":true`...)
	}
	return append(b, "}\n"...)
}

// said appends what Cache-Status says of an answer that was no hit. It consists of tokens and numbers.
func said(b []byte, e *proxy.Event) []byte {
	from, st := len(b), e.Said
	st.Cache = "x"
	if b = st.Append(b); len(b) == from+len("x") {
		return append(b[:from], '-')
	}
	return append(b[:from], b[from+len("x; "):]...)
}

// seconds appends a duration with six decimals. strconv.AppendFloat takes three times as long.
func seconds(b []byte, d time.Duration) []byte {
	us := d.Microseconds()
	b = append(strconv.AppendInt(b, us/1e6, 10), '.')
	for place := int64(1e5); place > 0; place /= 10 {
		b = append(b, byte('0'+us/place%10))
	}
	return b
}

const hex = "0123456789abcdef"

// plain is true for the bytes that need no escape.
var plain = func() (set [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		set[c] = c != '"' && c != '\\'
	}
	return set
}()

// escape appends s with escapes, so that it cannot end the line or a quoted string.
func escape(b []byte, s string, json bool) []byte {
	for i := 0; i < len(s); {
		from := i
		for i < len(s) && plain[s[i]] {
			i++
		}
		if b = append(b, s[from:i]...); i == len(s) {
			break
		}
		c := s[i]
		switch r, n := utf8.DecodeRuneInString(s[i:]); {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case json && r == utf8.RuneError && n == 1:
			b = append(b, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15]) // as in a URL: JSON has no bytes
		case c >= utf8.RuneSelf && (json || r != utf8.RuneError || n > 1):
			b = utf8.AppendRune(b, r)
			i += n - 1
		case json:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		}
		i++
	}
	return b
}
