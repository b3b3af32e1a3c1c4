package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// A request of a trace.
type request struct {
	time   float64 // seconds
	client string  // "-" if the source does not say
	key    uint32  // index of trace.names
	size   int64   // bytes; 0 if the source does not say
}

// A trace is what clients asked for, in time order.
type trace struct {
	requests []request
	names    []string
	skipped  int // broken lines, left out on request
}

// untimed reports whether the times only number the requests.
func (t *trace) untimed() bool {
	for i, r := range t.requests {
		if r.time-t.requests[0].time != float64(i) {
			return false
		}
	}
	return len(t.requests) > 1
}

// maxTraceLine bounds a line, in bytes.
const maxTraceLine = 1 << 20

// errOther marks a line that is in order but no request for a cacheable object.
var errOther = errors.New("not a successful GET")

// readTrace reads a trace in one of three formats, told by the first line:
// "SECONDS CLIENT KEY SIZE", Squid's native access log, or the Common Log
// Format; gzip or not. skip leaves broken lines out instead of refusing them.
func readTrace(path string, skip bool) (*trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseTrace(f, path, skip)
}

func parseTrace(source io.Reader, path string, skip bool) (*trace, error) {
	in := bufio.NewReader(source)
	source = in
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		source = unpacked
	}
	lines := bufio.NewScanner(source)
	lines.Buffer(make([]byte, 64<<10), maxTraceLine)
	t := new(trace)
	index := map[string]uint32{}
	var parse func(line string) (r request, name string, err error)
	number, last := 0, math.Inf(-1)
	for lines.Scan() {
		number++
		line := lines.Text()
		if strings.TrimSpace(line) == "" {
			continue
		}
		if parse == nil {
			parse = traceFormat(line)
		}
		r, name, err := parse(line)
		if errors.Is(err, errOther) {
			continue
		}
		if err != nil {
			if skip {
				t.skipped++
				continue
			}
			return nil, fmt.Errorf("%s:%d: %w (--skip leaves such lines out)", path, number, err)
		}
		// Logs are written when a request ends: slightly out of order.
		last = max(last, r.time)
		r.time = last
		key, known := index[name]
		if !known {
			key = uint32(len(t.names))
			name = strings.Clone(name)
			index[name] = key
			t.names = append(t.names, name)
		}
		r.key, r.client = key, strings.Clone(r.client)
		t.requests = append(t.requests, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", path, number+1, err)
	}
	if len(t.requests) == 0 {
		return nil, fmt.Errorf("%s: no requests", path)
	}
	return t, nil
}

func traceFormat(line string) func(string) (request, string, error) {
	fields := strings.Fields(line)
	switch {
	case strings.Contains(line, `] "`):
		return parseCommon
	case len(fields) >= 7 && strings.Contains(fields[3], "/"):
		return parseSquid
	}
	return parsePlain
}

func parsePlain(line string) (r request, name string, err error) {
	fields := strings.Fields(line)
	if len(fields) != 4 {
		return r, "", fmt.Errorf("%d fields: want SECONDS CLIENT KEY SIZE", len(fields))
	}
	if r.time, err = traceTime(fields[0]); err != nil {
		return r, "", err
	}
	r.size, err = traceSize(fields[3])
	r.client = fields[1]
	return r, fields[2], err
}

// parseSquid reads "time elapsed client code/status bytes method URL ...".
func parseSquid(line string) (r request, name string, err error) {
	fields := strings.Fields(line)
	if len(fields) < 7 {
		return r, "", fmt.Errorf("%d fields: want at least the 7 of Squid's access log", len(fields))
	}
	if r.time, err = traceTime(fields[0]); err != nil {
		return r, "", err
	}
	_, status, found := strings.Cut(fields[3], "/")
	if code, err := strconv.Atoi(status); !found || err != nil {
		return r, "", fmt.Errorf("result %q: want CODE/STATUS", fields[3])
	} else if fields[5] != "GET" || code < 200 || code >= 400 {
		return r, "", errOther
	}
	r.size, err = traceSize(fields[4])
	r.client = fields[2]
	return r, fields[6], err
}

// parseCommon reads `client ident user [time] "GET /path HTTP/1.1" status bytes`.
func parseCommon(line string) (r request, name string, err error) {
	head, rest, found1 := strings.Cut(line, " [")
	stamp, rest, found2 := strings.Cut(rest, `] "`)
	call, rest, found3 := strings.Cut(rest, `" `)
	if !found1 || !found2 || !found3 {
		return r, "", errors.New(`want CLIENT IDENT USER [TIME] "REQUEST" STATUS BYTES`)
	}
	when, err := time.Parse("02/Jan/2006:15:04:05 -0700", stamp)
	if err != nil {
		return r, "", fmt.Errorf("time %q: want 02/Jan/2006:15:04:05 -0700", stamp)
	}
	result, words := strings.Fields(rest), strings.Fields(call)
	if len(result) < 2 {
		return r, "", errors.New("want a status and bytes after the request")
	}
	code, err := strconv.Atoi(result[0])
	switch {
	case err != nil:
		return r, "", fmt.Errorf("status %q", result[0])
	case len(words) < 2 || words[0] != "GET" || code < 200 || code >= 400:
		return r, "", errOther
	}
	if result[1] != "-" {
		if r.size, err = traceSize(result[1]); err != nil {
			return r, "", err
		}
	}
	if code != 200 {
		r.size = 0 // not the object's
	}
	r.time, r.client = float64(when.Unix()), strings.Fields(head + " -")[0]
	return r, words[1], nil
}

func traceTime(text string) (float64, error) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || math.Abs(seconds) > 1e12 {
		return 0, fmt.Errorf("time %q: want seconds", text)
	}
	return seconds, nil
}

func traceSize(text string) (int64, error) {
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil || size < 0 || size > 1<<50 {
		return 0, fmt.Errorf("size %q: want bytes, 0 or more", text)
	}
	return size, nil
}
