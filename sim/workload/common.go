package workload

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// A logLine is a line of the Common Log Format or of Combined, taken apart: who [time] "request" status size, and more.
// Servers escape quotes in the request as \" or \x22, or not at all, and everything in it was chosen by a client.
type logLine struct {
	shape
	entry
	escaped bool // the quote that looks like the end of the request has a backslash before it
}

// A shape is what the lines of one log have in common.
type shape struct {
	sites    sites
	ends     int  // places that look like the end of a request: quote, status, size
	quotes   int  // of all kinds
	combined bool // more quoted fields follow
}

// sites says where lines have the site (virtual host).
type sites uint8

const (
	noSite sites = iota
	siteFirst
	siteSecond // after the client
)

func (s shape) name() string {
	name := "Common Log Format"
	if s.combined {
		name = "Combined"
	}
	return name + [...]string{"", ", virtual host first", ", virtual host second"}[s.sites]
}

// parse reads a line of a log with lines of shape s. If it has other quotes and other ends than these, or an escaped end,
// it has more than one meaning: whoever sent the request may have written one of them. So nobody can choose the status
// and size of a request.
func (s shape) parse(line string) (Request, error) {
	switch l, ok := apart(line); {
	case !ok || l.sites != s.sites:
		return Request{}, foreign
	case l.escaped || l.quotes != s.quotes && l.ends != s.ends:
		return Request{}, ambiguous
	default:
		return l.request()
	}
}

// apart takes a line apart at its first end.
func apart(line string) (l logLine, ok bool) {
	from, to, when := timeIn(line)
	if to < 0 || !l.parties(line[:from-1]) {
		return l, false
	}
	l.seconds = when
	// Some have more words before the request.
	rest := line[to+1:]
	start := strings.IndexByte(rest, '"')
	rest = rest[start+1:]
	for at := 0; ; { // each turn begins behind the quote of the one before
		i := strings.Index(rest[at:], `" `)
		if i < 0 {
			l.quotes = strings.Count(line, `"`)
			return l, l.ends > 0
		}
		i, at = at+i, at+i+2
		status, after, _ := strings.Cut(rest[at:], " ")
		size, more, _ := strings.Cut(after, " ")
		if len(status) != 3 && status != "-" && status != "0" || !digits(status) || !digits(size) {
			continue
		}
		if l.ends++; l.ends == 1 {
			l.method, l.target = call(unescape(rest[:i]))
			l.status, l.size, l.combined = status, size, strings.Contains(more, `"`)
			before := rest[:i]
			l.escaped = (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1
		}
	}
}

// digits reports whether s is a number, or - for none.
func digits(s string) bool { return s == "-" || s != "" && strings.Trim(s, "0123456789") == "" }

// timeIn returns where the time is in a line, and the time: the last one in brackets before the first quote behind it.
// The name of a user may have brackets as well.
func timeIn(line string) (from, to int, when float64) {
	for at := 0; ; {
		i := strings.IndexByte(line[at:], '[')
		if i < 0 {
			return 0, -1, 0
		}
		at += i + 1
		n := strings.IndexByte(line[at:min(len(line), at+48)], ']')
		if n < 0 || at < 2 {
			continue
		}
		when, err := moment(line[at : at+n])
		if err != nil {
			continue
		}
		if next := strings.IndexAny(line[at+n:], `["`); next >= 0 && line[at+n+next] == '"' {
			return at, at + n, when
		}
	}
}

// moments are the ways in which logs write times.
var moments = []string{
	"2/Jan/2006:15:04:05 -0700", time.RFC3339, "2006-01-02T15:04:05Z0700", "2006/01/02 15:04:05", "2006-01-02 15:04:05",
}

// moment returns a time in seconds since 1970. A leap second is the second before it.
func moment(text string) (float64, error) {
	text = strings.Replace(strings.Trim(text, " \x00"), ":60", ":59", 1)
	for _, layout := range moments {
		if t, err := time.Parse(layout, text); err == nil {
			if s := float64(t.UnixMilli()) / 1e3; s >= 0 {
				return s, nil
			}
		}
	}
	return 0, fmt.Errorf("time %s: want one such as %s", quote(text), moments[0])
}

// parties finds client and site in what stands before the time, if that is without doubt.
func (l *logLine) parties(head string) bool {
	words := strings.Fields(head)
	if len(words) == 2 {
		words = append(words, "-") // nginx with escape=none, or no identity
	} else if len(words) < 3 {
		return false
	}
	client, i := words[0], 0
	for i < len(words)-3 && strings.HasSuffix(words[i], ",") { // X-Forwarded-For: the first is the client
		i++
	}
	words = words[i:]
	second := words[1]
	addressed, secondIs := isAddress(strings.TrimSuffix(client, ",")), isAddress(second)
	switch named := len(words) == 3 || words[2] == "-"; {
	case second == "-":
		for j := range client {
			if client[j] == ':' && !addressed && isAddress(client[j+1:]) { // goatcounter's combined-vhost
				l.sites, l.site, client = siteFirst, client[:j], client[j+1:]
				break
			}
		}
	case !named || addressed && secondIs:
		return false
	case !addressed && (secondIs || len(words) > 3):
		l.sites, l.site, client = siteFirst, client, second
	case addressed && strings.Contains(second, "."):
		l.sites, l.site = siteSecond, second
	}
	l.client = host(strings.TrimSuffix(client, ","))
	return true
}

// host returns a client's address without a port.
func host(client string) string {
	if !strings.Contains(client, ":") {
		return client
	} else if a, err := netip.ParseAddrPort(client); err == nil {
		return a.Addr().String()
	}
	return client
}

func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// call takes a request apart: GET /path HTTP/1.1. The path may have blanks, and HTTP/0.9 has no version.
func call(request string) (method, target string) {
	if request = strings.Trim(request, " "); request == "-" {
		return "", ""
	}
	method, target, _ = strings.Cut(request, " ")
	if i := strings.LastIndex(target, " HTTP/"); i >= 0 {
		target = target[:i]
	}
	return method, strings.Trim(target, " ")
}

// unescape undoes the escapes of Apache, nginx and package accesslog.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if v, err := strconv.ParseUint(s[min(i+2, len(s)):min(i+4, len(s))], 16, 8); s[i+1] == 'x' && err == nil {
				b = append(b, byte(v))
				i += 3
				continue
			}
			if at := strings.IndexByte(`"\nrtbvf`, s[i+1]); at >= 0 {
				b = append(b, "\"\\\n\r\t\b\v\f"[at])
				i++
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}
