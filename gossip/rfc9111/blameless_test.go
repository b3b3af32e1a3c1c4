package rfc9111

import (
	"net/http"
	"strings"
	"testing"
)

// TestBlameless: what a browser or a test of caches sends cannot have provoked a 400 by more than its path. Whatever attacks
// by poisoned errors use can.
func TestBlameless(t *testing.T) {
	request := func(url string, fields ...string) *http.Request {
		r, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range append(fields, "Accept: text/html,*/*;q=0.8", "Accept-Encoding: gzip, br", "Accept-Language: en-US,en;q=0.5",
			"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101", "Sec-Fetch-Mode: navigate", "Pragma: no-cache", `Sec-Ch-Ua: "Chromium";v="140"`) {
			name, value, _ := strings.Cut(f, ": ")
			r.Header.Add(name, value)
		}
		return r
	}
	const page = "http://www.test/a/page-1.html"
	for _, good := range []*http.Request{request(page), request(page, "Test-Id: 5f2c-11", "Req-Num: 2"), request("http://www.test")} {
		if !Blameless(good) {
			t.Errorf("Blameless(%s, %v) = false", good.URL, good.Header)
		}
	}
	long := strings.Repeat("a", 257)
	for _, bad := range []*http.Request{request(page + "?a"), request(page + "?"), request(page + "%20"), request("http://www.test/" + long)} {
		if Blameless(bad) {
			t.Errorf("Blameless(%s) = true", bad.URL)
		}
	}
	for _, field := range []string{"Cookie: a=b", "Authorization: Basic x", "Range: bytes=0-", "If-None-Match: 1", "If-Range: x", "Content-Length: 1", "Content-Type: a",
		"X-Http-Method-Override: POST", "Http-Method: POST", "X-Forwarded-Host: a", "X-Forwarded-Proto: a", "X-Original-Url: /", "X-Oversized: a", "Api-Key: a", "Api-Version: 9",
		"Expect: 100-continue", "Upgrade: h2c", "Te: trailers", "Transfer-Encoding: chunked", "Referer: http://a.test/", "Origin: null", "Forwarded: for=a", "Via: 1.1 a",
		"Prefer: a", "Max-Forwards: 0", "Proxy-Authorization: a", "Sec-Websocket-Key: a", "Test_Id: a", "Test-Id: " + long, "Test-Id: a\x01", "Test-Id: a\\", "Test-Id: <a>", "Test-Id: {a}",
		"Test-Id: ü", "Test-Id: a Host: evil.test", "Accept: second line", "Grpc-Timeout: 1S", "Access-Control-Request-Method: PUT", "Destination: /"} {
		if Blameless(request(page, field)) {
			t.Errorf("Blameless(… %q) = true", field)
		}
	}
	many := request(page)
	for i := range 26 {
		many.Header.Set("Test-"+string(rune('a'+i)), strings.Repeat("a", 200))
	}
	if Blameless(many) {
		t.Error("Blameless(5 KiB of fields) = true")
	}
	for _, badly := range []string{"Accept: \"", "Accept-Language: (", "Accept-Encoding: [", "Accept-Charset: a:b", "User-Agent: <", "User-Agent: a Host: evil.test"} {
		r := request(page)
		name, value, _ := strings.Cut(badly, ": ")
		if r.Header.Set(name, value); Blameless(r) {
			t.Errorf("Blameless(… %q) = true", badly)
		}
	}
}
