package canonical

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	for _, c := range []struct {
		in, want  string
		ambiguous bool
	}{
		{"http://EXAMPLE.test", "http://example.test/", false},
		{"HTTP://example.test:80/a", "http://example.test/a", false},
		{"https://example.test:443/a", "https://example.test/a", false},
		{"http://example.test:443/a", "http://example.test:443/a", false},
		{"http://example.test:/a", "http://example.test/a", false},
		{"http://Example.test./a", "http://example.test/a", false},
		{"http://example.test.:8080/a", "http://example.test:8080/a", false},
		{"http://example.test:0080/a", "http://example.test/a", false},
		{"https://example.test.:00443/a", "https://example.test/a", false},
		{"https://example.test:080/a", "https://example.test:80/a", false},
		{"http://[2001:DB8:0:0:0:0:0:1]/a", "http://[2001:db8::1]/a", false},
		{"http://[2001:db8::0:1]:8080/a", "http://[2001:db8::1]:8080/a", false},
		{"http://[::FFFF:192.0.2.1]:80/a", "http://[::ffff:192.0.2.1]/a", false},
		{"http://u:p@example.test/a#f", "http://example.test/a", false},
		{"http://B\u00fccher.example/a", "http://xn--bcher-kva.example/a", false},
		{"http://b\u00fccher.example.:080/a", "http://xn--bcher-kva.example/a", false},
		{"http://h/%7Euser/%61%2D%5f", "http://h/~user/a-_", false},
		{"http://h/%c3%a9", "http://h/%C3%A9", false},
		{"http://h/\u00e9", "http://h/%C3%A9", false},
		{"http://h/a b", "http://h/a%20b", false},
		{"http://h/{a}|\"<^`", "http://h/%7Ba%7D%7C%22%3C%5E%60", false},
		{"http://h/a[1]", "http://h/a[1]", false},
		{"http://h/.", "http://h/", false},
		{"http://h/..", "http://h/", false},
		{"http://h/../../a", "http://h/a", false},
		{"http://h/a/./b/../c", "http://h/a/c", false},
		{"http://h/a/b/..", "http://h/a/", false},
		{"http://h/a/b/.", "http://h/a/b/", false},
		{"http://h/a/...", "http://h/a/...", false},
		{"http://h/.a/..b", "http://h/.a/..b", false},
		{"http://h/a/", "http://h/a/", false},
		{"http://h/a+b,c@d:e=f$!*'()&g", "http://h/a+b,c@d:e=f$!*'()&g", false},
		{"http://h/@scope%2fname", "http://h/@scope%2fname", true},
		{"http://h/a%5Cb", "http://h/a%5Cb", true},
		{`http://h/a\b`, "http://h/a%5Cb", true},
		{"http://h/a//b", "http://h/a//b", true},
		{"http://h//", "http://h//", true},
		{"http://h//a/../b", "http://h//a/../b", true},
		{"http://h/a%00.css", "http://h/a%00.css", true},
		{"http://h/a%0a.css", "http://h/a%0a.css", true},
		{"http://h/a%3F.css", "http://h/a%3F.css", true},
		{"http://h/a%23.css", "http://h/a%23.css", true},
		{"http://h/a;b.css", "http://h/a;b.css", true},
		{"http://h/a%3b.css", "http://h/a%3b.css", true},
		{"http://h/a%252fb", "http://h/a%252fb", true},
		{"http://h/a/%2e%2E/b", "http://h/a/%2e%2E/b", true},
		{"http://h/a/%2e", "http://h/a/%2e", true},
		{"http://h/a/.%2e/b%7e", "http://h/a/.%2e/b%7e", true},
		{"http://h/a%2ecss", "http://h/a.css", false},
		{"http://h/%c0%af", "http://h/%c0%af", true},
		{"http://h/%C3/a", "http://h/%C3/a", true},
		{"http://h/\xc3/a", "http://h/%C3/a", true},
		{"http://h/a%2Fb\"c", "http://h/a%2Fb%22c", true},
		{"http://h/a?b=%7e%2f//..&c=\"<\u00e9> ", "http://h/a?b=%7e%2f//..&c=%22%3C%C3%A9%3E%20", false},
		{"http://h/a?", "http://h/a?", false},
		{"http://h?x", "http://h/?x", false},
	} {
		u, err := url.Parse(c.in)
		if err != nil {
			t.Fatal(err)
		}
		got := URL(u)
		if got.String() != c.want || Ambiguous(u) != c.ambiguous {
			t.Errorf("URL(%q) = %q, ambiguous %v, want %q, %v", c.in, got.String(), Ambiguous(u), c.want, c.ambiguous)
		}
		if got.EscapedPath() != got.RawPath && got.RawPath != "" {
			t.Errorf("URL(%q) has the path %q, and would send %q", c.in, got.RawPath, got.EscapedPath())
		}
	}
}

// TestInvalidBytes: a byte that a path or query must not have is escaped wherever it stands, and no other.
func TestInvalidBytes(t *testing.T) {
	const reserved = "!$&'()*+,;=:@/%[]?-._~"
	for b := range 256 {
		c := string([]byte{byte(b)})
		alnum := b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		for _, where := range []string{"#", "a#", "#a", "a#b", "##", "a#b#"} {
			in, escaped := strings.ReplaceAll(where, "#", c), strings.ReplaceAll(where, "#", fmt.Sprintf("%%%02X", b))
			want := escaped
			if alnum || strings.Contains(reserved, c) || strings.Contains("{}|\\^`#", c) {
				want = in // these a query has, or usually has
			}
			if got := Query(in); got != want {
				t.Errorf("Query(%q) = %q, want %q", in, got, want)
			}
			if c == "%" || c == "/" || c == "." {
				continue // not of this kind
			}
			if want = escaped; alnum || c != "?" && strings.Contains(reserved, c) {
				want = in
			}
			if got := Path("/" + in); got != "/"+want {
				t.Errorf("Path(%q) = %q, want %q", "/"+in, got, "/"+want)
			}
		}
	}
}

// FuzzURL checks that the form of the form is the form itself, that a client could have sent it, and
// that only what RFC 3986 calls equivalent has the same form.
func FuzzURL(f *testing.F) {
	for _, s := range []string{"/a/../b", "/%2e/%2F", "/a%zz", "//", "/\xff", "/a?b%", "", "*", "/;/..", "/%C3%A9/%c3", "a/../b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.Parse("http://h" + s)
		if err != nil || u.Host != "h" {
			return
		}
		once := URL(u)
		again, err := url.Parse(once.String())
		if err != nil {
			t.Fatalf("URL(%q) = %q: %v", s, once.String(), err)
		}
		if again.Fragment = ""; again.String() != once.String() || again.EscapedPath() != once.EscapedPath() {
			t.Fatalf("URL(%q) = %q, parsed: %q", s, once.String(), again.String())
		}
		if twice := URL(again); twice.String() != once.String() || Ambiguous(again) != Ambiguous(u) {
			t.Fatalf("URL(%q) = %q, ambiguous %v, and of that %q, %v", s, once.String(), Ambiguous(u), twice.String(), Ambiguous(again))
		}
		sent := once.RequestURI()
		if !strings.HasPrefix(sent, "/") || strings.ContainsAny(sent, " \"<>\r\n\x00") || strings.Contains(once.EscapedPath(), `\`) {
			t.Fatalf("URL(%q) is sent as %q", s, sent)
		}
		if Ambiguous(u) {
			return
		}
		plain, _ := url.PathUnescape(once.EscapedPath())
		for segment := range strings.SplitSeq(plain, "/") {
			if segment == "." || segment == ".." {
				t.Fatalf("URL(%q) = %q has the segment %q", s, once.String(), segment)
			}
		}
		if strings.Count(plain, "/") != strings.Count(once.EscapedPath(), "/") || strings.Contains(plain, "//") {
			t.Fatalf("URL(%q) = %q is ambiguous", s, once.String())
		}
	})
}

func BenchmarkURL(b *testing.B) {
	for _, s := range []string{"http://example.test/assets/app-0123456789abcdef.css?v=3", "http://example.test/a/../%7Euser/%c3%a9"} {
		b.Run(s, func(b *testing.B) {
			u, _ := url.Parse(s)
			for b.Loop() {
				URL(u)
			}
		})
	}
}

// What is valid is so in normal form, too, which is its own.
func TestValidHost(t *testing.T) {
	for host, valid := range map[string]bool{
		"a": true, "A.test": true, "a.test.": true, "a_b-c~.test": true, "192.0.2.1": true, "[::1]": true, "[2001:DB8::1]:8080": true, "[fe80::1%eth0]": true, "a:": true,
		"a:1": true, "a:65535": true, "a:00080": true, "a!$&'()*+,;=b": true, "\u00e4.test": true, "a%41": true,
		"": false, ".": false, ".a": false, "a..b": false, "a..": false, ":80": false, "a:0": false, "a:000": false, "a:65536": false, "a:abc": false, "a:8a": false, "a:-1": false, "a:+1": false,
		"a: 1": false, "a:1:2": false, "::1": false, "[]": false, "[::1": false, "::1]": false, "[::1]a": false, "[::1]:x": false, "[1.2.3.4]": false, "[a]": false, "[::1]]": false, "a@b": false,
		"a/b": false, "a b": false, "a\tb": false, "a\x00": false, "a\\b": false, "a?b": false, "a#b": false, "a\"b": false, "<a>": false, "a|b": false, "a^b": false, "{a}": false, "a\x7f": false,
	} {
		if got := ValidHost(host); got != valid {
			t.Errorf("ValidHost(%q) = %v, want %v", host, got, valid)
		}
		for _, scheme := range []string{"http", "https"} {
			once := Authority(scheme, host)
			if twice := Authority(scheme, once); valid && (twice != once || !ValidHost(once)) {
				t.Errorf("Authority(%q, %q) = %q, of which it makes %q", scheme, host, once, twice)
			}
		}
	}
}

func BenchmarkHost(b *testing.B) {
	for _, host := range []string{"www.example.test", "www.example.test:8443", "[2001:db8::1]:8443"} {
		b.Run(host, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !ValidHost(host) || Authority("http", host) != host {
					b.Fatal("it is not in normal form")
				}
			}
		})
	}
}
