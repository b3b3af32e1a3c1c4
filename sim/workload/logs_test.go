package workload

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// usual is a line of a Combined log, between others.
const usual = `10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET /usual HTTP/1.1" 200 10 "-" "x"` + "\n"

// at is the time of most lines here.
const at = 1431857103

// A line that public reports name, or a kind of it, in a log of usual lines.
func TestOddLines(t *testing.T) {
	const none = "" // left out
	for name, c := range map[string]struct {
		line string // (.) stands for [the time]
		want Request
		odd  string
	}{
		"escaped quotes":                     {`10.0.0.2 - - (.) "GET /s?q=\"tea\" HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/s?q=%22tea%22", 5}, none},
		"nginx's escaped quotes":             {`10.0.0.2 - - (.) "GET /s?q=\x22tea\x22 HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/s?q=%22tea%22", 5}, none},
		"quotes":                             {`10.0.0.2 - - (.) "GET /s?q="tea" HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/s?q=%22tea%22", 5}, none},
		"quotes in the agent":                {`10.0.0.2 - - (.) "GET /a HTTP/1.1" 200 5 "-" ""echo 2""`, Request{at, "10.0.0.2", "/a", 5}, none},
		"escaped quote ends the agent":       {`10.0.0.2 - - (.) "GET /a HTTP/1.1" 200 5 "-" "10\""`, Request{at, "10.0.0.2", "/a", 5}, none},
		"backslashes":                        {`10.0.0.2 - - (.) "GET /a\\x41\x5c HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", `/a\x41\`, 5}, none},
		"blanks":                             {`10.0.0.2 - - (.) "GET /a b HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/a%20b", 5}, none},
		"raw UTF-8":                          {`10.0.0.2 - - (.) "GET /ä HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/%C3%A4", 5}, none},
		"escaped UTF-8":                      {`10.0.0.2 - - (.) "GET /\xc3\xa4 HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/%C3%A4", 5}, none},
		"no escape":                          {`10.0.0.2 - - (.) "GET /100% HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/100%25", 5}, none},
		"HTTP/0.9":                           {`10.0.0.2 - - (.) "GET /index.html" 200 612 "-" "-"`, Request{at, "10.0.0.2", "/index.html", 612}, none},
		"HTTP/2":                             {`10.0.0.2 - - (.) "GET /a HTTP/2.0" 200 6 "-" "-"`, Request{at, "10.0.0.2", "/a", 6}, none},
		"whole URL":                          {`10.0.0.2 - - (.) "GET http://a.test/x HTTP/1.1" 200 6 "-" "-"`, Request{at, "10.0.0.2", "http://a.test/x", 6}, none},
		"IPv6":                               {`2001:db8::1 - - (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "2001:db8::1", "/a", 5}, none},
		"a name":                             {`dsl.example.net - - (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "dsl.example.net", "/a", 5}, none},
		"a port":                             {`[2001:db8::1]:5555 - - (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "2001:db8::1", "/a", 5}, none},
		"X-Forwarded-For":                    {`192.1.2.12, 10.0.0.9, 10.0.0.8 - - (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "192.1.2.12", "/a", 5}, none},
		"XFF and the proxy":                  {`192.1.2.12 127.0.0.1 - - (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{}, "1 line in another format"},
		"no client":                          {`- - - (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "-", "/a", 5}, none},
		"user with a dot":                    {`10.0.0.2 - first.last (.) "GET /a HTTP/1.1" 200 5`, Request{at, "10.0.0.2", "/a", 5}, none}, // nothing follows, where others are Combined
		"user with blanks":                   {`10.0.0.2 - \"car5941 \" (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/a", 5}, none},
		"user of quotes":                     {`10.0.0.2 - "" (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/a", 5}, none},
		"user with a time":                   {`10.0.0.2 - [1/Jan/2030:00:00:00 +0000] (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/a", 5}, none},
		"no user":                            {`10.0.0.2 -  (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/a", 5}, none},
		"ident":                              {`10.0.0.2 tom - (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/a", 5}, none},
		"two blanks":                         {`10.0.0.2 - -  (.)  "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/a", 5}, none},
		"cache status before the request":    {`10.0.0.2 - - (.) HIT "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/a", 5}, none},
		"more fields":                        {`10.0.0.2 - - (.) "GET /a HTTP/1.1" 200 5 "-" "a" "1.2.3.4, 5.6.7.8" 0.000, 0.004 .`, Request{at, "10.0.0.2", "/a", 5}, none},
		"one-digit day":                      {`10.0.0.2 - - [7/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/a", 5}, none},
		"leap second":                        {`10.0.0.2 - - [17/May/2015:10:05:60 +0000] "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at + 56, "10.0.0.2", "/a", 5}, none},
		"milliseconds":                       {`10.0.0.2 - - [17/May/2015:10:05:03.500 +0000] "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at + 0.5, "10.0.0.2", "/a", 5}, none},
		"ISO 8601":                           {`10.0.0.2 - - [2015-05-17T12:05:03+02:00] "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{at, "10.0.0.2", "/a", 5}, none},
		"NULs in the time":                   {"10.0.0.2 - - [17/May/2015:10:05:03 -0000\x00\x00] \"GET /a HTTP/1.1\" 200 5 \"-\" \"a\"", Request{at, "10.0.0.2", "/a", 5}, none},
		"NULs after a crash":                 {"\x00\x00\x0010.0.0.2 - - (.) \"GET /a HTTP/1.1\" 200 5 \"-\" \"a\"", Request{at, "10.0.0.2", "/a", 5}, none},
		"CRLF":                               {"10.0.0.2 - - (.) \"GET /a HTTP/1.1\" 200 5 \"-\" \"a\"\r", Request{at, "10.0.0.2", "/a", 5}, none},
		"304":                                {`10.0.0.2 - - (.) "GET /a HTTP/1.1" 304 - "-" "a"`, Request{at, "10.0.0.2", "/a", 0}, none},
		"206":                                {`10.0.0.2 - - (.) "GET /a HTTP/1.1" 206 99 "-" "a"`, Request{at, "10.0.0.2", "/a", 0}, none},
		"no size":                            {`10.0.0.2 - - (.) "GET /a HTTP/1.1" 200 - "-" "a"`, Request{at, "10.0.0.2", "/a", 0}, none},
		"POST":                               {`10.0.0.2 - - (.) "POST /a HTTP/1.1" 200 5 "-" "a"`, Request{}, "1 line left out"},
		"404":                                {`10.0.0.2 - - (.) "GET /a HTTP/1.1" 404 5 "-" "a"`, Request{}, "1 line left out"},
		"no status":                          {`10.0.0.2 - - (.) "GET /a HTTP/1.1" - 5 "-" "a"`, Request{}, "1 line left out"},
		"OPTIONS *":                          {`10.0.0.2 - - (.) "OPTIONS * HTTP/1.1" 200 - "-" "-"`, Request{}, "1 line left out"},
		"bad path":                           {`10.0.0.2 - - (.) "GET %. HTTP/1.1" 400 226 "-" "-"`, Request{}, "1 line left out"},
		"no path":                            {`10.0.0.2 - - (.) "GET a HTTP/1.1" 200 226 "-" "-"`, Request{}, "1 target without a path"},
		"408":                                {`10.0.0.2 - - (.) "-" 408 3294 "-" "-"`, Request{}, "1 empty request "},
		"408 without a size":                 {`10.0.0.2 - - (.) "-" 408 - "-" "-" 0/14`, Request{}, "1 empty request "},
		"nothing":                            {`10.0.0.2 - - (.) "" 400 0 "-" "-"`, Request{}, "1 empty request "},
		"TLS":                                {`10.0.0.2 - - (.) "\x16\x03\x01\x00u\x01\x00\x00q\x03\x03 \xC0W\x22;\xD6" 400 150 "-" "-"`, Request{}, "1 request in no HTTP"},
		"TLS with success":                   {`10.0.0.2 - - (.) "\x16\x03\x01\x02" 200 150 "-" "-"`, Request{}, "1 request in no HTTP"},
		"RDP":                                {`10.0.0.2 - - (.) "\x03\x00\x00/*\xE0\x00\x00\x00\x00\x00Cookie: mstshash=Administr" 400 150 "-" "-"`, Request{}, "1 request in no HTTP"},
		"a probe":                            {`10.0.0.2 - - (.) "MGLNDD_192.241.213.192_443" 400 150 "-" "-"`, Request{}, "1 request in no HTTP"},
		"who chose status and size, escaped": {`10.0.0.2 - - (.) "GET /x?\" 200 999999 HTTP/1.1" 404 12 "-" "-"`, Request{}, "1 line with quotes that can be read in two ways"},
		"not escaped":                        {`10.0.0.2 - - (.) "GET /x" 200 999999 HTTP/1.1" 404 12 "-" "-"`, Request{}, "1 line with quotes"},
		"with a version":                     {`10.0.0.2 - - (.) "GET /x HTTP/1.1" 200 999999 "-" " HTTP/1.1" 404 12 "-" "curl"`, Request{}, "1 line with quotes"},
		"in the agent":                       {`10.0.0.2 - - (.) "GET /x\" 404 12 "-" " HTTP/1.1" 200 999999 ""`, Request{}, "1 line with quotes"},
		"in the name of the user":            {`10.0.0.2 - x [1/Jan/2000:00:00:00 +0000] "GET /y HTTP/1.1" 200 99 " (.) "GET / HTTP/1.1" 401 12 "-" "-"`, Request{}, "1 line with quotes"},
		"a great size":                       {`10.0.0.2 - - (.) "GET /a HTTP/1.1" 200 99999999999999999999 "-" "a"`, Request{}, "1 line in another format"},
		"an error":                           {`[Fri Jul 23 00:28:19.615325 2021] [:error] [pid 17705] ipa: INFO: "GET /a HTTP/1.1" 200 5 x`, Request{}, "1 line in another format"},
		"half a line":                        {`1" 200 12 "-" "x"`, Request{}, "1 line in another format"},
		"syslog":                             {`Dec 23 15:31:15 web nginx: 10.0.0.2 - - (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, Request{}, "1 line in another format"},
		"a long line":                        {`10.0.0.2 - - (.) "GET /` + strings.Repeat("a", maxLine) + ` HTTP/1.1" 200 5 "-" "a"`, Request{}, "1 line of more than 65,536 bytes"},
		"a very long line":                   {`10.0.0.2 - - (.) "GET /` + strings.Repeat("a", 3*maxSample) + ` HTTP/1.1" 200 5 "-" "a"`, Request{}, "1 line of more than 65,536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			line := strings.ReplaceAll(c.line, "(.)", "[17/May/2015:10:05:03 +0000]")
			got, err := Read("log", strings.NewReader(usual+usual+line+"\n"+usual), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if says := got.Summary(); c.odd != none && (!strings.Contains(says, c.odd) || len(got.Requests) != 3) {
				t.Errorf("Read(%.200s) has %d requests, %s; want 3 and %s", line, len(got.Requests), says, c.odd)
			} else if c.odd == none && (len(got.Requests) != 4 || got.Requests[2] != c.want) {
				t.Errorf("Read(%.200s) = %+v, %s; want %+v", line, got.Requests, says, c.want)
			}
			if s := got.skips; len(s) > 1 || got.Left+len(s) > 1 {
				t.Errorf("Read(%.200s) says %s", line, got.Summary())
			}
			for kind, s := range got.skips {
				if s.first != 3 {
					t.Errorf("%s: the first in line %d, want 3", kind, s.first)
				}
			}
			if got, err = Read("log", strings.NewReader(usual+usual+line+"\n"+usual), Options{Targets: true}); err != nil || len(got.Requests) == 4 != (c.odd == none) {
				t.Errorf("Read(%.200s) of targets = %+v, %v", line, got, err)
			}
		})
	}
}

// Keys of logs become targets that every cache writes in the same way.
func TestLogTargets(t *testing.T) {
	for call, want := range map[string]string{
		"/a?b=c&d[]=1": "/a?b=c&d[]=1", "/a b": "/%2Fa%2520b", "/../a": "/%2F..%2Fa", "/%41": "/%2F%2541", "/a|b": "/%2Fa%7Cb", "/a#b": "/%2Fa%23b",
		"http://a.test/b?c": "/http:%2F%2Fa.test%2Fb%3Fc",
	} {
		got, err := Read("log", strings.NewReader(strings.ReplaceAll(usual, "/usual", call)), Options{Targets: true})
		if err != nil || got.Requests[0].Key != want {
			t.Errorf("Read(GET %s) = %+v, %v; want %s", call, got, err, want)
		}
	}
}

// Logs whose lines are alike.
func TestFormats(t *testing.T) {
	const nginx = `"time_local":"17/May/2015:10:05:03 +0000","request":"GET /a?b=1 HTTP/1.1","status":"200","body_bytes_sent":"5","http_user_agent":"a`
	for name, c := range map[string]struct {
		line, what string
		want       Request
	}{
		"Common":             {`10.0.0.2 - - (.) "GET /a HTTP/1.1" 200 5`, "Common Log Format", Request{at, "10.0.0.2", "/a", 5}},
		"Combined":           {`10.0.0.2 - first.last (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, "Combined", Request{at, "10.0.0.2", "/a", 5}},
		"vhost_combined":     {`shop.test:80 10.0.0.2 - - (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, "Combined, virtual host first", Request{at, "10.0.0.2", "shop.test:80/a", 5}},
		"without a port":     {`test ::1 - - (.) "GET /a HTTP/1.1" 200 5`, "Common Log Format, virtual host first", Request{at, "::1", "test/a", 5}},
		"names":              {`shop.test:443 dsl.example.net - tom (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, "Combined, virtual host first", Request{at, "dsl.example.net", "shop.test:443/a", 5}},
		"user with blanks":   {`shop.test 10.0.0.2 - Tom Smith (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, "Combined, virtual host first", Request{at, "10.0.0.2", "shop.test/a", 5}},
		"a site's address":   {`192.0.2.1:80 10.0.0.2 - - (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, "Combined, virtual host first", Request{at, "10.0.0.2", "192.0.2.1:80/a", 5}},
		"goatcounter's":      {`wizard.test:443:10.0.0.2 - - (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, "Combined, virtual host first", Request{at, "10.0.0.2", "wizard.test:443/a", 5}},
		"with IPv6":          {`wizard.test:2001:db8::1 - - (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, "Combined, virtual host first", Request{at, "2001:db8::1", "wizard.test/a", 5}},
		"site second":        {`2a01:4f8::2 git.example.net - (.) "GET /a HTTP/1.1" 200 5 "-" "a"`, "Combined, virtual host second", Request{at, "2a01:4f8::2", "git.example.net/a", 5}},
		"status at the end":  {`10.0.0.2 - - (.) "GET /a HTTP/1.1" 200 5 "-" "a" 304 0`, "Combined", Request{at, "10.0.0.2", "/a", 5}},
		"Squid":              {`1431857103.000    310 10.0.0.2 TCP_MISS/200 3452 GET http://a.test/ - HIER_DIRECT/10.0.0.9 text/html`, "Squid's", Request{at, "10.0.0.2", "http://a.test/", 3452}},
		"Squid, blanks":      {`1431857103.000 310 10.0.0.2 TCP_HIT/200 3452 GET http://a.test/a b c - NONE/- text/html`, "Squid's", Request{at, "10.0.0.2", "http://a.test/a%20b%20c", 3452}},
		"Squid, headers":     {`1431857103.000 310 10.0.0.2 TCP_HIT/200 3452 GET http://a.test/ tom NONE/- text/html [Host: a/b] []`, "Squid's", Request{at, "10.0.0.2", "http://a.test/", 3452}},
		"Squid, 206":         {`1431857103.000 310 10.0.0.2 TCP_MISS/206 141234 GET http://a.test/ - HIER_DIRECT/10.0.0.9 -`, "Squid's", Request{at, "10.0.0.2", "http://a.test/", 0}},
		"Squid, 304":         {`1431857103.000 310 10.0.0.2 TCP_IMS_HIT/304 294 GET http://a.test/ - NONE/- -`, "Squid's", Request{at, "10.0.0.2", "http://a.test/", 0}},
		"Squid, aborted":     {`1431857103.000 310 10.0.0.2 TCP_MISS_ABORTED/200 294 GET http://a.test/ - NONE/- -`, "Squid's", Request{at, "10.0.0.2", "http://a.test/", 0}},
		"peer":               {`{"time":"2015-05-17T10:05:03Z","client":"10.0.0.2","method":"GET","host":"a.test","uri":"/a?b=\"c\"","protocol":"HTTP/1.1","outcome":"local-hit","status":200,"bytes":5,"seconds":0.001}`, "JSON", Request{at, "10.0.0.2", "a.test/a?b=%22c%22", 5}},
		"peer, broken":       {`{"time":"2015-05-17T10:05:03Z","client":"10.0.0.2","method":"GET","uri":"/a","status":200,"bytes":5,"seconds":0.001,"broken":true}`, "JSON", Request{at, "10.0.0.2", "/a", 0}},
		"Caddy":              {`{"level":"info","ts":1431857103.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"10.0.0.2","remote_port":"53176","client_ip":"10.0.0.2","proto":"HTTP/2.0","method":"GET","host":"a.test","uri":"/a","headers":{"Accept":["*/*"]},"tls":{"resumed":false}},"bytes_read":0,"duration":0.03,"size":13341,"status":200,"resp_headers":{"Server":["Caddy"]}}`, "JSON", Request{at + 0.5, "10.0.0.2", "https://a.test/a", 13341}},
		"Caddy before 2.5":   {`{"ts":"2015/05/17 10:05:03","request":{"remote_addr":"[2001:db8::1]:63746","method":"GET","host":"a.test","uri":"/"},"size":7,"status":200}`, "JSON", Request{at, "2001:db8::1", "a.test/", 7}},
		"Caddy, ms":          {`{"ts":1431857103000.5,"request":{"remote_ip":"10.0.0.2","method":"GET","host":"a.test","uri":"/"},"size":7,"status":200}`, "JSON", Request{1431857103000.5 / 1e3, "10.0.0.2", "a.test/", 7}},
		"nginx":              {`{"remote_addr":"10.0.0.2","host":"a.test",` + nginx + `"}`, "JSON", Request{at, "10.0.0.2", "a.test/a?b=1", 5}},
		"nginx, \\x":         {`{"remote_addr":"10.0.0.2",` + nginx + `\x22\xC3\xA4\x5C"}`, "JSON", Request{at, "10.0.0.2", "/a?b=1", 5}},
		"nginx, UTF-8":       {`{"time_local":"17/May/2015:10:05:03 +0000","request":"GET /\xC3\xA4\x22 HTTP/1.1","status":"200"}`, "JSON", Request{at, "", "/%C3%A4%22", 0}},
		"nginx, $uri":        {`{"time_iso8601":"2015-05-17T12:05:03+02:00","remote_addr":"10.0.0.2","request_method":"GET","uri":"/a","args":"b=1","status":200,"body_bytes_sent":5}`, "JSON", Request{at, "10.0.0.2", "/a?b=1", 5}},
		"nginx, request_uri": {`{"msec":"1431857103.000","remote_addr":"10.0.0.2","request_method":"GET","uri":"/index.html","args":"","request_uri":"/","status":"200","body_bytes_sent":"5"}`, "JSON", Request{at, "10.0.0.2", "/", 5}},
		"matomo's":           {` {"ip": "10.0.0.2","host": "a.test","method":"GET","path": "/","status": "200","length": 2597,"date": "2015-05-17T03:05:03-07:00"}`, "JSON", Request{at, "10.0.0.2", "a.test/", 2597}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat(strings.ReplaceAll(c.line, "(.)", "[17/May/2015:10:05:03 +0000]")+"\r\n", 3)
			for packing, data := range map[string][]byte{
				"none": []byte(text), "mark": []byte(byteOrderMark + text), "gzip": squeeze(t, byteOrderMark+text), "zstd": squeezeMore(t, text),
			} {
				got, err := Read("log", bytes.NewReader(data), Options{})
				if err != nil {
					t.Fatal(packing, err)
				}
				if want := []Request{c.want, c.want, c.want}; !reflect.DeepEqual(got.Requests, want) || got.Format != c.what || got.Left+len(got.skips) > 0 {
					t.Errorf("Read(%s), packed by %s = %+v, %s; want %s %+v", c.line, packing, got.Requests, got.Summary(), c.what, want)
				}
			}
		})
	}
}

func squeezeMore(t testing.TB, text string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll([]byte(text), nil)
}

// TestLeftOut: lines of other formats than Combined that are no requests.
func TestLeftOut(t *testing.T) {
	for name, c := range map[string]struct{ usual, line, says string }{
		"Squid":                   {squid, "1066036252.603 310 10.0.0.2 TCP_MISS/404 99 GET http://b.test/ - NONE/- text/html", "1 line left out"},
		"denied, with a redirect": {squid, "1066036252.603 0 10.0.0.2 TCP_DENIED/302 99 GET http://b.test/ - HIER_NONE/- text/html", "1 line left out"},
		"no query":                {squid, "1066036252.603 310 10.0.0.2 TCP_MISS/200 99 GET http://b.test/s? - NONE/- text/html", "1 target whose query Squid left out"},
		"nothing":                 {squid, "1795959522.651 0 10.0.0.2 NONE_NONE/000 0 - error:transaction-end-before-headers - HIER_NONE/- -", "1 empty request "},
		"no query, in Combined":   {strings.Repeat(usual, 3), `10.0.0.2 - - [29/Nov/2026:13:38:42 +0000] "GET http://b.test/s? HTTP/1.1" 200 9 "-" "-" TCP_MISS:HIER_DIRECT`, "1 target whose query"},
		"nothing, in Combined":    {strings.Repeat(usual, 3), `10.0.0.2 - - [29/Nov/2026:13:38:42 +0000] "- error:transaction-end-before-headers NONE/0.0" 0 0 "-" "-" NONE_NONE:HIER_NONE`, "1 empty request "},
		"a tunnel":                {squid, "1066036252.603 9 10.0.0.2 TCP_TUNNEL/200 6016 CONNECT b.test:443 - HIER_DIRECT/10.0.0.9 -", "1 line left out"},
		"a client that left":      {squid, "1066036252.603 9 10.0.0.2 NONE_ABORTED/000 0 GET http://b.test/ - HIER_NONE/- -", "1 line left out"},
		"TLS":                     {squid, "1493737013.541 0 10.0.0.2 TAG_NONE/400 3813 \x16\x03\x01 %BF%7B3 - HIER_NONE/- text/html", "1 request in no HTTP"},
		"a negative size":         {squid, "1066036252.603 310 10.0.0.2 TCP_MISS/200 -99 GET http://b.test/ - NONE/- text/html", "1 line in another format"},
		"a word":                  {squid, "1066036252.603 310 10.0.0.2 TCP_MISS/ok 99 GET http://b.test/ - NONE/- text/html", "1 line in another format"},
		"JSON":                    {object1, `{"level":"info","ts":1431857103.5,"msg":"server running"}`, "1 line in another format"},
		"a key twice, from a client": {object1, `{"time":"2015-05-17T10:05:03Z","method":"GET","uri":"/a","status":404,"bytes":5,"agent":"","status":200,"bytes":99,"x":""}`,
			"1 line with quotes that can be read in two ways"},
		"a key twice in Caddy's": {object1, `{"ts":1,"request":{"method":"POST","uri":"/","method":"GET"},"status":200,"bytes":99}`, "1 line with quotes"},
		"two objects":            {object1, `{"time":"2015-05-17T10:05:03Z","method":"GET","uri":"/a","status":200}{}`, "1 line in another format"},
		"no time":                {object1, `{"method":"GET","uri":"/a","status":200}`, "1 line in another format"},
		"no method":              {object1, `{"time":"2015-05-17T10:05:03Z","uri":"/a","status":200}`, "1 line in another format"},
		"empty":                  {object1, `{"time":"2015-05-17T10:05:03Z","request":"","status":400}`, "1 empty request "},
		"empty, nginx's":         {object1, `{"time":"2015-05-17T10:05:03Z","request_method":"-","request_uri":"-","status":400}`, "1 empty request "},
		"TLS in JSON":            {object1, `{"time":"2015-05-17T10:05:03Z","request":"\u0016\u0003\x01\xff","status":400}`, "1 request in no HTTP"},
		"an array":               {object1, `{"time":["2015-05-17T10:05:03Z"],"method":"GET","uri":{"a":1},"status":[200]}`, "1 line in another format"},
		"another site layout":    {strings.Repeat("a.test "+usual, 3), "10.0.0.2 - - [17/May/2015:10:05:03 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"a\"", "1 line in another format"},
		"HAProxy's, slow":        {haproxy, strings.Replace(haproxy[:len(haproxy)/3-1], `"s" 1 0`, `"s" 250 0`, 1), "4 requests"},
		"HAProxy's, bad":         {haproxy, `10.0.0.2 - - [29/Nov/2026:13:40:54 +0000] "<BADREQ>" 408 0 "" "" 38080 993 "f" "f" "<NOSRV>" -1 -1 -1 -1 2003 cR-- 1 1 0 0 0 0 0 "" "" `, "1 request in no HTTP"},
		"one end less":           {strings.Repeat(strings.TrimSpace(usual)+" 200 5\n", 3), strings.TrimSpace(usual), "4 requests"},
		"one end more":           {strings.Repeat(strings.TrimSpace(usual)+" 200 5\n", 3), strings.TrimSpace(usual) + ` 200 5 "" 200 5`, "1 line with quotes"},
	} {
		got, err := Read("log", strings.NewReader(c.usual+c.line+"\n"), Options{})
		if err != nil || !strings.Contains(got.Summary(), c.says) || len(got.Requests) == 3 == strings.HasPrefix(c.says, "4") {
			t.Errorf("%s: Read(%s) = %+v, %v, want %s", name, c.line, got, err, c.says)
		}
	}
}

var (
	haproxy = strings.Repeat(`10.0.0.2 - - [29/Nov/2026:13:40:54 +0000] "GET /a HTTP/1.1" 200 127 "" "" 38002 991 "f" "b" "s" 1 0 0 1 2 ---- 1 1 0 0 0 0 0 "" "" `+"\n", 3)
	squid   = strings.Repeat("1066036250.603 310 10.0.0.1 TCP_MISS/200 3452 GET http://a.test/ - NONE/- text/html\n", 3)
	object1 = strings.Repeat(`{"time":"2015-05-17T10:05:03Z","client":"10.0.0.2","method":"GET","uri":"/a","status":200,"bytes":5}`+"\n", 3)
)

// A line that lacks its end counts if nothing depends on the end.
func TestLastLineCut(t *testing.T) {
	for line, whole := range map[string]bool{
		`10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 10 "-" "x`:                                        true,
		`10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 10`:                                               false,
		`10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200`:                                                  false,
		`10.0.0.1 - - [17/May/2015:10:0`:                                                                                   false,
		"1066036250.603 310 10.0.0.1 TCP_MISS/200 3452 GET http://a.test/ - NONE/- tex":                                    true,
		"1066036250.603 310 10.0.0.1 TCP_MISS/200 3452 GET http://a.test/a":                                                false,
		`{"time":"2015-05-17T10:05:03Z","client":"10.0.0.2","method":"GET","uri":"/a","status":200,"bytes":5}`:             true,
		`{"time":"2015-05-17T10:05:03Z","client":"10.0.0.2","method":"GET","uri":"/a","status":200,"bytes":5,"seconds":0.`: false,
		usual[:20] + strings.Repeat("a", 3*maxSample):                                                                      false,
	} {
		log := usual + usual
		if line[0] == '{' {
			log = object1[:2*len(object1)/3]
		} else if !strings.Contains(line, "[") {
			log = squid[:2*len(squid)/3]
		}
		got, err := Read("log", strings.NewReader(log+line), Options{})
		if err != nil || len(got.Requests) == 3 != whole || len(got.skips) == 0 != whole {
			t.Errorf("Read(...%s) = %+v, %v; want it whole: %v", line, got, err, whole)
		}
	}
}

// A log whose compressed data was cut is read to where it breaks off, in the middle of a line or at its end.
func TestCompressedLogCut(t *testing.T) {
	var log strings.Builder
	for i := range 20_000 {
		log.WriteString(strings.Replace(usual, "usual", fmt.Sprint(i*i), 1))
	}
	for name, packed := range map[string][]byte{"gzip": squeeze(t, log.String()), "Zstandard": squeezeMore(t, log.String())} {
		for _, keep := range []int{len(packed) / 2, len(packed) - 20, len(packed) - 1} {
			got, err := Read("log", bytes.NewReader(packed[:keep]), Options{})
			if err != nil {
				t.Errorf("%s, %d of %d bytes: %v", name, keep, len(packed), err)
				continue
			}
			n := len(got.Requests)
			says := fmt.Sprintf(", 1 line skipped: 1 line where the compressed data breaks off: the file was cut (the first in line %s)", count(n+1))
			if n < 20_000*keep/len(packed)/3 || got.Requests[n-1].Key != fmt.Sprintf("/%d", (n-1)*(n-1)) || !strings.HasSuffix(got.Summary(), says) {
				t.Errorf("%s, %d of %d bytes: %d requests, %s; want it to end with %s", name, keep, len(packed), n, got.Summary(), says)
			}
		}
		if _, err := Read("log", bytes.NewReader(packed[:12]), Options{}); err == nil {
			t.Errorf("%s, 12 of %d bytes: want an error", name, len(packed))
		}
	}
}

func TestRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		text, says string
		line       int
	}{
		"IIS":      {"#Software: Microsoft IIS\n#Fields: date time\n2014-09-27 10:00:00 GET / - 10.0.0.1 200\n", "neither SECONDS CLIENT", 1},
		"half":     {usual + "x\n" + "y\n" + usual + "z\n" + "GET\n" + usual + "end\n" + "end\n" + usual + "end\n", `7 of 11 lines are not Combined, the first of them is "x"`, 2},
		"JSON":     {strings.Repeat(`{"time":"2015-05-17T10:05:03Z","message":"hello"}`+"\n", 3), `3 of 3 lines are not JSON, the first of them is "{\"time\":\"2015-05-17T10:05:03Z\",\"message\":\"hello\"}": a method is missing`, 1},
		"no GETs":  {strings.ReplaceAll(usual, "GET", "PUT"), "no requests that count: Combined: 0 requests, 0 clients, 1 line left out", 2},
		"proxies":  {"10.0.0.1 127.0.0.1 - - [17/May/2015:10:05:03 +0000] \"GET /usual HTTP/1.1\" 200 10\n", "neither", 1},
		"too long": {"aaa" + strings.Repeat("b", 3*maxSample) + "\n" + usual, `: "aaabb`, 1},
		"OVH":      {`10.0.0.1 www.a.test - [04/Mar/2015:00:00:05 +0100] "GET /a HTTP/1.1 200 0" http://a.test Mozilla/5.0 "" ""` + "\n", "neither", 1},
		"xz":       {"\xfd7zXZ\x00", "this is xz: want text", 0},
		"UTF-16":   {"\xff\xfe1\x00", "this is UTF-16", 0},
		"not zstd": {"\x28\xb5\x2f\xfdabcdefgh", "cannot read on", 1},
	} {
		for _, packing := range []func(string) []byte{func(s string) []byte { return []byte(s) }, func(s string) []byte { return squeeze(t, s) }} {
			got, err := Read("log", bytes.NewReader(packing(c.text)), Options{})
			if err == nil || !strings.Contains(err.Error(), c.says) || c.line > 0 && !strings.HasPrefix(err.Error(), fmt.Sprintf("log:%d: ", c.line)) {
				t.Errorf("%s: Read = %+v, %v; want line %d and %s", name, got, err, c.line, c.says)
			}
		}
	}
	if _, err := Read("log", strings.NewReader(strings.Repeat(usual, 99)), Options{memory: 6400}); err == nil || !strings.HasPrefix(err.Error(), "log:98: the trace is too long") {
		t.Errorf("Read of a trace that takes too much memory: %v", err)
	}
}

func FuzzLog(f *testing.F) {
	for _, text := range []string{usual, "a.test:80 " + usual, squid, object1, small, "1 c /a%2Fb 5\n1e3 c \x00 0\n"} {
		f.Add([]byte(text))
		f.Add([]byte(byteOrderMark + text + text[:len(text)/2]))
		f.Add([]byte(strings.ReplaceAll(text, "GET /usual", `GET /\x22"\" 200 7 "`)))
	}
	f.Add(squeeze(f, small))
	f.Add(squeeze(f, small)[:20])
	f.Add(squeezeMore(f, usual))
	f.Fuzz(func(t *testing.T, data []byte) {
		targets := len(data)%2 == 0
		o := Options{Targets: targets}
		got, err := Read("fuzz", bytes.NewReader(data), o)
		if (got == nil) == (err == nil) {
			t.Fatalf("Read = %v, %v", got, err)
		}
		if got == nil {
			return
		}
		if again, err := Read("fuzz", bytes.NewReader(data), o); err != nil || !reflect.DeepEqual(got, again) || got.Summary() != again.Summary() {
			t.Fatalf("Read = %+v, and then %+v, %v", got, again, err)
		}
		plain, last := strings.HasPrefix(got.Format, "a plain"), 0.0
		for _, r := range got.Requests {
			if r.Key == "" || targets && r.Key[0] != '/' || r.Size < 0 || !(r.Seconds >= last) || got.Sizes[r.Key] < r.Size ||
				!plain && strings.ContainsFunc(r.Key, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '"' }) {
				t.Fatalf("Read let %+v pass", r)
			}
			last = r.Seconds
		}
	})
}

// FuzzLogClient: whatever a client sends, a refused request stays refused, in a log that escapes quotes, in one that
// does not, and in nginx's JSON.
func FuzzLogClient(f *testing.F) {
	for _, s := range []string{`GET /x" 200 999 HTTP/1.1`, `GET /x HTTP/1.1" 200 999 "-" "`, `GET /x\`, `" 200 999 "`, `","status":"200","x":"`, `[17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 9 "`, "x - 10.0.0.1"} {
		f.Add(s, s, s)
	}
	f.Fuzz(func(t *testing.T, request, agent, user string) {
		one := strings.NewReplacer("\n", "", "\x00", "", "\r", "").Replace
		request, agent, user = one(request), one(agent), one(user)
		if len(request)+len(agent)+len(user) > 10_000 {
			return
		}
		escape := func(s string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) }
		for _, escape := range []func(string) string{one, escape} {
			line := fmt.Sprintf(`10.0.0.2 - - [17/May/2015:10:05:03 +0000] "%s" 404 12 "-" "%s"`, escape(request), escape(agent))
			named := fmt.Sprintf(`10.0.0.2 - %s [17/May/2015:10:05:03 +0000] "%s" 401 12 "-" "%s"`, escape(user), escape(request), escape(agent))
			for _, l := range []string{line, named} {
				if got, err := Read("log", strings.NewReader(usual+usual+usual+l+"\n"), Options{}); err != nil || len(got.Requests) != 3 {
					t.Fatalf("Read(%s) = %+v, %v; want 3 requests", l, got, err)
				}
			}
		}
		line := fmt.Sprintf(`{"time":"2015-05-17T10:05:03Z","client":"10.0.0.2","request":"%s","status":404,"bytes":5,"agent":"%s"}`, request, agent)
		if got, err := Read("log", strings.NewReader(object1+line+"\n"), Options{}); err != nil || len(got.Requests) != 3 {
			t.Fatalf("Read(%s) = %+v, %v; want 3 requests", line, got, err)
		}
	})
}
