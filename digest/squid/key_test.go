package squid

import "testing"

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
