package workload

import (
	"bufio"
	"bytes"
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
	maxLine    = 64 << 10  // bytes of a line, its end included
	maxSample  = 256 << 10 // bytes at the beginning that decide what the format is
	maxSize    = 1 << 40   // bytes of a body
	maxSeconds = 1e12
)

// Options say how to read a trace.
type Options struct {
	// make each key an HTTP request target: a usual path stays, any other key becomes a path of one segment
	Targets bool

	memory int64 // bytes that the trace may take, about; 0 = 4 GiB
}

// A LineError says which line of a trace is broken, and how.
type LineError struct {
	File   string
	Line   int // from 1
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// ReadFile reads the trace or the access log in a file, whatever its name.
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

// Read reads a trace or an access log, plain, gzip or Zstandard. name is the file's name in errors. Most of the first
// lines determine the format. A log of which more than half is in another format is refused. One whose compressed data
// was cut is read to where it breaks off, without the line there.
func Read(name string, src io.Reader, o Options) (*Trace, error) {
	lines, err := unpack(name, src)
	if err != nil {
		return nil, err
	}
	defer lines.close()
	sample, _ := lines.Peek(maxSample) // an error comes again where it belongs
	t := &Trace{Name: name, Sizes: make(map[string]int64), skips: map[odd]*skipped{}}
	r := reader{name: name, o: o, format: formatOf(sample), Trace: t}
	if r.o.memory == 0 {
		r.o.memory = 4 << 30
	}
	r.Format = r.format.name
	for n := 1; ; n++ {
		line, err := lines.next()
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF) && r.all > 0 && !r.format.strict:
			r.skip(torn, n)
			return r.end(n)
		case err != nil && err != io.EOF:
			return nil, &LineError{name, n, damage(err)}
		case err == io.EOF && len(line) == 0:
			return r.end(n)
		}
		if err := r.read(n, line); err != nil {
			return nil, &LineError{name, n, err.Error()}
		}
	}
}

// A reader reads the lines of one trace.
type reader struct {
	*Trace
	name   string
	o      Options
	format format
	last   float64
	all    int // lines that are not blank
	other  int // lines in another format
	first  int // the first of these
	look   string
}

// read reads a line, which ends with a line feed unless it is the last one. An error refuses the trace.
func (r *reader) read(n int, line []byte) error {
	text := strings.Trim(string(line[:min(len(line), maxLine)]), " \t\r\n\x00") // a crash leaves a file with NULs
	if text == "" {
		return nil
	}
	if r.all++; r.format.parse == nil {
		return fmt.Errorf("neither %s: %s", Formats, quote(text))
	}
	var q Request
	var err error
	if len(line) > maxLine {
		err = long
	} else if q, err = r.format.parse(text); line[len(line)-1] != '\n' && !r.format.strict {
		// A line that lacks its end is whole if nothing depends on the end.
		if more, broken := r.format.parse(text + "0"); err != nil || broken == nil && more != q {
			err = cut
		}
	}
	if err == nil && r.o.Targets {
		q.Key, err = target(q.Key, r.format.strict)
	}
	kind, ok := errors.AsType[odd](err)
	switch {
	case err == nil:
		return r.request(q)
	case r.format.strict:
		return err
	case !ok:
		kind = foreign
	}
	if kind == left {
		r.Left++
		return nil
	}
	if kind.ofAnother() {
		if r.other++; r.other == 1 {
			r.first, r.look = n, quote(text)
			if !ok {
				r.look += ": " + err.Error()
			}
		}
	}
	r.skip(kind, n)
	return nil
}

// request appends q to the trace. Logs are written when a request ends, so they are slightly out of order.
func (r *reader) request(q Request) error {
	r.last = max(r.last, q.Seconds)
	q.Seconds = r.last
	q.Client, q.Key = unique.Make(q.Client).Value(), unique.Make(q.Key).Value() // copies, so that the line can be freed
	r.o.memory -= 64
	if _, known := r.Sizes[q.Key]; !known {
		r.o.memory -= int64(len(q.Key)) + 128
	}
	if r.o.memory < 0 {
		return errors.New("the trace is too long: take a part of it")
	}
	r.add(q)
	return nil
}

// end returns the trace if there is one. n is the number of lines, and one.
func (r *reader) end(n int) (*Trace, error) {
	switch {
	case r.all == 0:
		return nil, &LineError{r.name, n, "the trace has no requests"}
	case 2*r.other > r.all:
		return nil, &LineError{r.name, r.first, fmt.Sprintf("%s of %s lines are not %s, the first of them is %s",
			count(r.other), count(r.all), r.Format, r.look)}
	case len(r.Requests) == 0:
		return nil, &LineError{r.name, n, "no requests that count: " + r.Summary()}
	}
	return r.Trace, nil
}

// target turns a key into a request target. A key of a log that caches may write in another way becomes one segment,
// too.
func target(key string, strict bool) (string, error) {
	unusual := strings.ContainsAny(key, "%#<>\\^`{|}") || strings.Contains(key, "/.")
	if !strings.HasPrefix(key, "/") || unusual && !strict {
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

// lines are the lines of a file, unpacked.
type lines struct {
	*bufio.Reader
	close func()
}

// next returns the next line, with its end and at most maxSample bytes of it, and io.EOF after the last.
func (l *lines) next() ([]byte, error) {
	line, err := l.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line = bytes.Clone(line)
	}
	for err == bufio.ErrBufferFull { // ends with the file
		_, err = l.ReadSlice('\n')
	}
	if err == io.EOF && len(line) > 0 {
		err = nil
	}
	return line, err
}
