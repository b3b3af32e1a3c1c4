package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unique"
)

const (
	maxLine    = 64 << 10 // bytes of a line, its end included
	maxSize    = 1 << 40  // bytes of a body
	maxSeconds = 1e12
)

// Options say how to read a trace.
type Options struct {
	Skip    bool // skip broken lines, instead of refusing the trace
	Targets bool // make each key an HTTP request target: a path stays as it is, any other key becomes a path of one segment
}

// A LineError says which line of a trace is broken, and how.
type LineError struct {
	File   string
	Line   int // from 1
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// ReadFile reads the trace in a file, plain or gzip, whatever its name.
func ReadFile(path string, o Options) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := Read(path, f, o)
	if err != nil {
		return nil, err
	}
	t.Name = filepath.Base(path)
	return t, nil
}

// Read reads a trace, plain or gzip. name is the file's name in errors. The first line
// determines the format.
func Read(name string, src io.Reader, o Options) (*Trace, error) {
	lines := bufio.NewReaderSize(src, maxLine)
	if magic, _ := lines.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		plain, err := gzip.NewReader(lines)
		if err != nil {
			return nil, fmt.Errorf("%s: not a gzip file, though it begins like one: %w", name, err)
		}
		lines = bufio.NewReaderSize(plain, maxLine)
	}
	t := &Trace{Name: name, Sizes: make(map[string]int64)}
	var parse func(line string) (Request, error)
	last := 0.0
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, &LineError{name, n, fmt.Sprintf("the line is longer than %d bytes", maxLine)}
		case err == io.EOF && len(line) == 0 && len(t.Requests) == 0:
			return nil, &LineError{name, n, "the trace has no requests"}
		case err == io.EOF && len(line) == 0:
			return t, nil
		case err != nil && err != io.EOF:
			return nil, &LineError{name, n, damage(err)}
		case len(bytes.TrimSpace(line)) == 0:
			continue
		}
		text := string(line)
		if parse == nil {
			parse = formatOf(text)
		}
		r, err := parse(text)
		if err == nil && o.Targets {
			r.Key, err = target(r.Key)
		}
		switch {
		case errors.Is(err, errOther):
		case err != nil && o.Skip:
			t.Skipped++
		case err != nil:
			return nil, &LineError{name, n, err.Error()}
		default:
			// Logs are written when a request ends, so they are slightly out of order.
			last = max(last, r.Seconds)
			r.Seconds = last
			r.Client, r.Key = unique.Make(r.Client).Value(), unique.Make(r.Key).Value() // copies, so that the line can be freed
			t.add(r)
		}
	}
}

// damage explains an error of the decompressor or the disk.
func damage(err error) string {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the compressed data ends early: the file was cut short"
	case errors.Is(err, gzip.ErrChecksum):
		return "the compressed data is damaged: its checksum does not match"
	}
	return "cannot read on: " + err.Error()
}

// target turns a key into a request target.
func target(key string) (string, error) {
	if !strings.HasPrefix(key, "/") {
		return "/" + url.PathEscape(key), nil
	}
	if _, err := url.ParseRequestURI(key); err != nil {
		var why *url.Error
		if errors.As(err, &why) {
			err = why.Err
		}
		return "", fmt.Errorf("KEY %s is no URL path: %w", quote(key), err)
	}
	return key, nil
}

func seconds(text string) (float64, error) {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(s) || s < 0 || s > maxSeconds {
		return 0, fmt.Errorf("time %s: want seconds, 0 or more", quote(text))
	}
	return s, nil
}

func size(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxSize {
		return 0, fmt.Errorf("size %s: want bytes, 0 to %d", quote(text), int64(maxSize))
	}
	return n, nil
}

// quote quotes a piece of a trace, and shortens it if it is long.
func quote(s string) string {
	if len(s) > 60 {
		return strconv.Quote(s[:60]) + "..."
	}
	return strconv.Quote(s)
}
