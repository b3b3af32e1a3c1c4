package workload

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// errOther means that a line is correct, but not a request for a cacheable object.
var errOther = errors.New("not a successful GET")

// formatOf returns the parser for traces that begin with this line.
func formatOf(line string) func(string) (Request, error) {
	fields := strings.Fields(line)
	switch {
	case strings.Contains(line, `] "`):
		return parseCommon
	case len(fields) >= 7 && strings.Contains(fields[3], "/"):
		return parseSquid
	}
	return parsePlain
}

func parsePlain(line string) (r Request, err error) {
	fields := strings.Fields(line)
	if len(fields) != 4 {
		return r, fmt.Errorf("%d fields where SECONDS CLIENT KEY SIZE has 4: %s", len(fields), quote(strings.TrimSpace(line)))
	}
	r.Client, r.Key = fields[1], fields[2]
	if r.Seconds, err = seconds(fields[0]); err != nil {
		return r, err
	}
	r.Size, err = size(fields[3])
	return r, err
}

// parseSquid reads "time elapsed client code/status bytes method URL ...".
func parseSquid(line string) (r Request, err error) {
	fields := strings.Fields(line)
	if len(fields) < 7 {
		return r, fmt.Errorf("%d fields: want at least the 7 of Squid's access log", len(fields))
	}
	r.Client, r.Key = fields[2], fields[6]
	if r.Seconds, err = seconds(fields[0]); err != nil {
		return r, err
	}
	_, status, _ := strings.Cut(fields[3], "/")
	if err := successful(fields[5], status); err != nil {
		return r, err
	}
	r.Size, err = size(fields[4])
	return r, err
}

// parseCommon reads `client ident user [time] "GET /path HTTP/1.1" status bytes`.
func parseCommon(line string) (r Request, err error) {
	head, rest, found1 := strings.Cut(line, " [")
	stamp, rest, found2 := strings.Cut(rest, `] "`)
	call, rest, found3 := strings.Cut(rest, `" `)
	result := strings.Fields(rest)
	if !found1 || !found2 || !found3 || len(result) < 2 {
		return r, errors.New(`want CLIENT IDENT USER [TIME] "REQUEST" STATUS BYTES`)
	}
	when, err := time.Parse("02/Jan/2006:15:04:05 -0700", stamp)
	if err != nil {
		return r, fmt.Errorf("time %s: want 02/Jan/2006:15:04:05 -0700", quote(stamp))
	}
	words := append(strings.Fields(call), "", "")
	if err := successful(words[0], result[0]); err != nil {
		return r, err
	}
	if result[0] == "200" && result[1] != "-" { // otherwise the size is not that of the object
		if r.Size, err = size(result[1]); err != nil {
			return r, err
		}
	}
	r.Seconds, r.Client, r.Key = float64(when.Unix()), strings.Fields(head + " -")[0], words[1]
	if r.Key == "" {
		return r, errOther
	}
	return r, nil
}

// successful returns nil for a GET with a status of 200 to 399, and errOther for another
// request.
func successful(method, status string) error {
	code, err := strconv.Atoi(status)
	switch {
	case err != nil:
		return fmt.Errorf("status %s: want a number", quote(status))
	case method != "GET" || code < 200 || code >= 400:
		return errOther
	}
	return nil
}
