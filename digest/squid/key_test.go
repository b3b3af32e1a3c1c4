package squid

import "testing"

func TestCanonicalURL(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"http://Example.COM", "http://example.com/"},
		{"HTTP://example.com:80/a", "http://example.com/a"},
		{"https://example.com:443/", "https://example.com/"},
		{"http://example.com:443/", "http://example.com:443/"},
		{"http://example.com:8080/A?Q=%7e", "http://example.com:8080/A?Q=%7e"},
		{"http://me:pass@example.com/", "http://example.com/"},
		{"http://example.com//b/../c/%41", "http://example.com//b/../c/%41"},
		{"http://example.com?q", "http://example.com/?q"},
		{"http://example.com/a#frag", "http://example.com/a#frag"},
		{"http://[2001:DB8::1]:8080/x", "http://[2001:db8::1]:8080/x"},
		{"http://example.com/user@host", "http://example.com/user@host"},
		{"/path", ""}, {"http://", ""}, {"http:///x", ""}, {"://x", ""}, {"", ""},
	} {
		got, ok := CanonicalURL(c.url)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("CanonicalURL(%q) = %q, %v, want %q", c.url, got, ok, c.want)
		}
		if again, _ := CanonicalURL(got); ok && again != got {
			t.Errorf("CanonicalURL(%q) = %q, which is not canonical", got, again)
		}
	}
}

func TestVaryMark(t *testing.T) {
	request := map[string]string{"Accept-Encoding": "gzip", "Accept": "text/html; q=0.5, */*", "Empty": ""}
	value := func(name string) (string, bool) { v, ok := request[name]; return v, ok }
	for _, c := range []struct {
		fields []string
		want   string
	}{
		{nil, ""},
		{[]string{"Accept-Encoding"}, `accept-encoding="gzip"`},
		{[]string{"Absent"}, `absent`},
		{[]string{"Empty"}, `empty=""`},
		{[]string{"Accept-Encoding", "Absent"}, `accept-encoding="gzip", absent`},
		{[]string{"Accept"}, `accept="text%2Fhtml%3B%20q%3D0.5,%20*%2F*"`},
		{[]string{"Accept-Encoding", "*"}, `*`},
	} {
		if got := VaryMark(c.fields, value); got != c.want {
			t.Errorf("VaryMark(%q) = %q, want %q", c.fields, got, c.want)
		}
	}
}

// A key's input is the method, the URL and the mark, as one string of bytes.
func TestKeysDiffer(t *testing.T) {
	all := map[Key]string{}
	for name, k := range map[string]Key{
		"get":     KeyOf(Get, "http://example.com/", ""),
		"head":    KeyOf(Head, "http://example.com/", ""),
		"variant": KeyOf(Get, "http://example.com/", `accept-encoding="gzip"`),
		"other":   KeyOf(Get, "http://example.com/a", ""),
	} {
		if before, ok := all[k]; ok {
			t.Errorf("%s and %s have one key", name, before)
		}
		all[k] = name
	}
}
