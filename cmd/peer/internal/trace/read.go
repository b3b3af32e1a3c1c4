package trace

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
)

const (
	maxLine = 64 << 10 // bytes of a line, its end included
	maxSize = 1 << 40  // bytes of a body
)

// A LineError says which line of a trace is broken, and how.
type LineError struct {
	File   string
	Line   int // from 1
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// ReadFile reads the trace in a file, plain or gzip whatever its name.
func ReadFile(path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := Read(path, f)
	if err != nil {
		return nil, err
	}
	t.Name = filepath.Base(path)
	return t, nil
}

// Read reads a trace, plain or gzip; name stands for it in errors.
func Read(name string, src io.Reader) (*Trace, error) {
	lines := bufio.NewReaderSize(src, maxLine)
	if magic, _ := lines.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		plain, err := gzip.NewReader(lines)
		if err != nil {
			return nil, fmt.Errorf("%s: not a gzip file, though it begins like one: %w", name, err)
		}
		lines = bufio.NewReaderSize(plain, maxLine)
	}
	t := &Trace{Name: name, Sizes: make(map[string]int64)}
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, &LineError{name, n, fmt.Sprintf("the line is longer than %d bytes", maxLine)}
		case err == io.EOF && len(line) == 0 && n == 1:
			return nil, &LineError{name, n, "the trace is empty"}
		case err == io.EOF && len(line) == 0:
			return t, nil
		case err != nil && err != io.EOF:
			return nil, &LineError{name, n, damage(err)}
		}
		r, err := parse(strings.TrimSuffix(string(line), "\n"))
		if err != nil {
			return nil, &LineError{name, n, err.Error()}
		}
		t.add(r)
	}
}

// damage words what a decompressor or a disk says.
func damage(err error) string {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the compressed data ends early: the file was cut short"
	case errors.Is(err, gzip.ErrChecksum):
		return "the compressed data is damaged: its checksum does not match"
	}
	return "cannot read on: " + err.Error()
}

func parse(line string) (r Request, err error) {
	fields := strings.Split(line, " ")
	if len(fields) != 4 {
		return r, fmt.Errorf("%d fields where SECONDS CLIENT KEY SIZE has 4: %s", len(fields), quote(line))
	}
	for i, name := range [...]string{"SECONDS", "CLIENT", "KEY", "SIZE"} {
		if fields[i] == "" {
			return r, fmt.Errorf("%s is empty: fields are separated by one blank: %s", name, quote(line))
		}
	}
	r.Client = fields[1]
	if r.Seconds, err = strconv.ParseFloat(fields[0], 64); err != nil || r.Seconds < 0 || math.IsInf(r.Seconds, 0) || math.IsNaN(r.Seconds) {
		return r, fmt.Errorf("SECONDS %s is no non-negative number", quote(fields[0]))
	}
	if r.Target, err = target(fields[2]); err != nil {
		return r, err
	}
	if r.Size, err = strconv.ParseInt(fields[3], 10, 64); err != nil || r.Size < 0 {
		return r, fmt.Errorf("SIZE %s is no non-negative whole number", quote(fields[3]))
	}
	if r.Size > maxSize {
		return r, fmt.Errorf("SIZE %d is more than %d bytes", r.Size, int64(maxSize))
	}
	return r, nil
}

// target turns a key into a request target. A path stays as it is; any other
// key becomes a path of one segment.
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

// quote shows a piece of a trace, and not all of it if it is long.
func quote(s string) string {
	if len(s) > 60 {
		return strconv.Quote(s[:60]) + "..."
	}
	return strconv.Quote(s)
}
