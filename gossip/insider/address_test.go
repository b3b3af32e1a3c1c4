package insider

import (
	"strings"
	"testing"
)

func TestCheckJoin(t *testing.T) {
	for entry, want := range map[string]string{
		"10.0.0.1:7946": "", "[::1]:7946": "", "cache:7946": "", "srv:_gossip._tcp.cache": "", "srv:7946": "", "srv:cache.": "",
		"cache": "missing port", ":7946": "no host", "cache:0": "port 0", "cache:x": "want 0 to 65535", "cache:70000": "want 0 to 65535",
		"srv:": "not a name of SRV records", "srv:cache:7946": "without a port", "srv:a b": "not a name of SRV records", "": "missing port",
	} {
		err := CheckJoin(entry)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("CheckJoin(%q) = %v, want %q", entry, err, want)
		}
	}
}
