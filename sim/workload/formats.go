package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// A format of traces and access logs.
type format struct {
	name   string
	strict bool // a line in another format refuses the trace
	// parse reads a line without its end. An error that is no odd means that the line is in another format.
	parse func(line string) (Request, error)
}

// Formats names what [Read] reads.
const Formats = "SECONDS CLIENT KEY SIZE, Common, Combined, Squid's native log or JSON"

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// odd is the reason why a line of a log is no request for a cacheable object. %s is the plural.
type odd string

const (
	left      odd = "" // a line as it should be, of another method or without success
	empty     odd = "empty request%s"
	alien     odd = "request%s in no HTTP"
	pathless  odd = "target%s without a path"
	stripped  odd = "target%s whose query Squid left out (strip_query_terms)"
	ambiguous odd = "line%s with quotes that can be read in two ways"
	foreign   odd = "line%s in another format"
	long      odd = "line%s of more than 65,536 bytes"
	cut       odd = "line%s without an end"
	torn      odd = "line%s where the compressed data breaks off: the file was cut"
)

func (o odd) Error() string { return fmt.Sprintf(string(o), "") }

// ofAnother reports whether such lines make one doubt the format.
func (o odd) ofAnother() bool { return o == foreign || o == ambiguous || o == long }

// formatOf returns the format that most of these lines have; without parse if it is not known.
func formatOf(sample []byte) format {
	plain, squid, object, shapes := 0, 0, 0, map[shape]int{}
	var best shape
	for line := range strings.SplitSeq(string(sample), "\n") {
		line = strings.Trim(line, " \t\r\x00")
		if strings.HasPrefix(line, "{") {
			object++
		} else if words := strings.Fields(line); len(words) == 4 && isNumber(words[0]) {
			plain++
		} else if _, ok := squidFields(line); ok {
			squid++
		} else if l, ok := apart(line); ok {
			if shapes[l.shape]++; shapes[l.shape] > shapes[best] {
				best = l.shape
			}
		}
	}
	switch most := max(plain, squid, object, shapes[best]); most {
	case 0:
		return format{}
	case plain:
		return format{"a plain trace", true, parsePlain}
	case squid:
		return format{"Squid's", false, parseSquid}
	case object:
		return format{"JSON", false, parseJSON}
	}
	return format{best.name(), false, best.parse}
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// An entry is what a line of an access log says.
type entry struct {
	seconds        float64
	client, site   string
	method, target string
	status, size   string
	partial        bool // the size is not that of the object
}

// request returns the request for a cacheable object that e is.
func (e entry) request() (r Request, err error) {
	status, err := strconv.Atoi(e.status)
	switch {
	case strings.Trim(e.method, "-") == "":
		return r, empty
	case strings.Trim(e.method, letters+"-_") != "" || e.target == "":
		return r, alien
	case err != nil && e.status != "-":
		return r, fmt.Errorf("status %s: want a number", quote(e.status))
	case e.method != "GET" || status < 200 || status >= 400:
		return r, left
	}
	r.Seconds, r.Client, r.Key = e.seconds, e.client, urlText(e.target)
	switch {
	case e.target[0] == '/':
		r.Key = urlText(e.site) + r.Key
	case !strings.HasPrefix(e.target, "http://") && !strings.HasPrefix(e.target, "https://"):
		return r, pathless
	case strings.HasSuffix(e.target, "?"):
		return r, stripped // different objects have one name
	}
	if status == 200 && e.size != "-" && e.size != "" && !e.partial { // otherwise the size is not that of the object
		r.Size, err = size(e.size)
	}
	return r, err
}

// urlText escapes what a URL cannot have, so that the key is one word. It leaves escapes as they are.
func urlText(s string) string {
	var b []byte
	for i := range len(s) {
		c := s[i]
		isHex := func(at int) bool { return at < len(s) && strings.IndexByte("0123456789abcdefABCDEF", s[at]) >= 0 }
		plain := c > ' ' && c < 0x7f && c != '"' && (c != '%' || isHex(i+1) && isHex(i+2))
		switch {
		case !plain && b == nil:
			b = append(make([]byte, 0, len(s)+8), s[:i]...)
			fallthrough
		case !plain:
			b = fmt.Appendf(b, "%%%02X", c)
		case b != nil:
			b = append(b, c)
		}
	}
	if b == nil {
		return s
	}
	return string(b)
}

func parsePlain(line string) (r Request, err error) {
	fields := strings.Fields(line)
	if len(fields) != 4 {
		return r, fmt.Errorf("%d fields where SECONDS CLIENT KEY SIZE has 4: %s", len(fields), quote(line))
	}
	r.Client, r.Key = fields[1], fields[2]
	if r.Seconds, err = seconds(fields[0]); err != nil {
		return r, err
	}
	r.Size, err = size(fields[3])
	return r, err
}

// squidFields takes "time elapsed client code/status bytes method URL user hierarchy/address type" apart. The URL may
// have blanks.
func squidFields(line string) (fields []string, ok bool) {
	fields = strings.Fields(line)
	if len(fields) < 10 || !strings.Contains(fields[3], "/") {
		return nil, false
	}
	if _, err := seconds(fields[0]); err != nil {
		return nil, false
	}
	for i, f := range fields[8:] {
		if word, _, found := strings.Cut(f, "/"); found && word != "" && strings.Trim(word, letters+"_") == "" {
			fields[6] = strings.Join(fields[6:7+i], " ")
			return fields, true
		}
	}
	return nil, false
}

func parseSquid(line string) (r Request, err error) {
	f, ok := squidFields(line)
	if !ok {
		return r, foreign
	}
	code, status, _ := strings.Cut(f[3], "/")
	if strings.Contains(code, "DENIED") {
		return r, left
	}
	e := entry{client: f[2], method: f[5], target: f[6], status: status, size: f[4]}
	e.partial = strings.Contains(code, "ABORTED") || strings.Contains(code, "TIMEDOUT")
	e.seconds, _ = seconds(f[0])
	return e.request()
}
