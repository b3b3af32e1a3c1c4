package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSiteMistakes(t *testing.T) {
	plain := write(t, "plain", "x")
	for name, c := range map[string]struct{ text, want string }{
		"no origin":         {"sites:\n  - hosts: a.test\n", `peer.yaml:2: the site has no origins`},
		"far key":           {"sites:\n  - hosts: [a.test]\n    rules: [x]\n", `peer.yaml:3: unknown key "rules", want one of `},
		"unknown key":       {"sites:\n  - host: a.test\n    origins: http://x\n", `peer.yaml:2: unknown key "host", did you mean "hosts"?`},
		"the peer itself":   {"sites:\n  - hosts: a.test\n    origins: [http://x, http://127.0.0.1:3128]\n", `peer.yaml:3: origins "http://127.0.0.1:3128" is this peer's own --listen 127.0.0.1:3128`},
		"beside an origin":  {"origin: http://y\nsites:\n  - origins: http://x\n", `origin "http://y" cannot be combined with sites`},
		"a URL for a host":  {"sites:\n  - hosts: https://a.test/\n    origins: http://x\n", `hosts "https://a.test/" is not a host`},
		"an origin of text": {"sites:\n  - origins: [\"http://x\", x:80]\n", `peer.yaml:2: origins "x:80" is no`},
		"host twice":        {"sites:\n  - hosts: [a.test, b.test]\n    origins: http://x\n  - hosts: A.test\n    origins: http://y\n", `peer.yaml:4: hosts "a.test" is also used by the site in line 2`},
		"spelled twice":     {"sites:\n  - hosts: \"[2001:db8::1]\"\n    origins: http://x\n  - hosts: \"[2001:DB8:0:0::1]\"\n    origins: http://y\n", `hosts "[2001:db8::1]" is also used by the site in line 2`},
		"dotted twice":      {"sites:\n  - hosts: a.test\n    origins: http://x\n  - hosts: a.test.\n    origins: http://y\n", `hosts "a.test" is also used by the site in line 2`},
		"no port":           {"sites:\n  - hosts: a.test:99999\n    origins: http://x\n", `hosts "a.test:99999" is not a host`},
		"an empty label":    {"sites:\n  - hosts: a..test\n    origins: http://x\n", `hosts "a..test" is not a host`},
		"name twice":        {"sites:\n  - name: s\n    hosts: a\n    origins: http://x\n  - name: s\n    hosts: b\n    origins: http://y\n", `name "s" is also used by the site in line 2`},
		"two for all":       {"sites:\n  - origins: http://x\n  - origins: http://y\n", `peer.yaml:3: hosts is also used by the site in line 2`},
		"a path with query": {"sites:\n  - check: /up?x\n    origins: http://x\n", `check "/up?x" is not a path`},
		"no balance":        {"sites:\n  - balance: laod\n    origins: http://x\n", `balance "laod" is none of order, load, did you mean "load"?`},
		"no authority":      {"sites:\n  - ca: " + plain + "\n    origins: https://x\n", `holds no certificate`},
		"cert without key":  {"sites:\n  - cert: " + plain + "\n    origins: https://x\n", `needs a key`},
		"broken cert":       {"sites:\n  - cert: " + plain + "\n    key: " + plain + "\n    origins: https://x\n", `cannot be used`},
		"hasty":             {"sites:\n  - first-byte-timeout: 1ms\n    origins: http://x\n", `first-byte-timeout "1ms" is not between 10ms and 24h`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(t, "--config", write(t, "peer.yaml", c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s\n= %v, want %q", c.text, err, c.want)
			}
		})
	}
	c, _, err := load(t, "--trusted-proxies", "10.0.0.9", "--config", write(t, "peer.yaml",
		"sites:\n  - hosts: [A.test, a.test]\n    origins: http://x\n"))
	if err == nil {
		t.Errorf("a host twice in one site: %+v", c.Sites)
	}
	c, _, err = load(t, "--trusted-proxies", "10.0.0.9", "--config", write(t, "peer.yaml",
		"sites:\n  - hosts: [B\u00fccher.example, \"*.b\u00fccher.example\"]\n    origins: http://x\nrules:\n  - site: b\u00fccher.example\n    bypass: true\n"))
	if err != nil || !slices.Equal(c.Sites[0].Hosts, []string{"xn--bcher-kva.example", "*.xn--bcher-kva.example"}) || c.Rules[0].Sites[0] != "xn--bcher-kva.example" {
		t.Errorf("hosts as no request has them: %+v, %+v, %v", c.Sites, c.Rules, err)
	}
	c, _, err = load(t, "--trusted-proxies", "10.0.0.9,::ffff:10.1.0.0/112", "--config", write(t, "peer.yaml",
		"sites:\n  - hosts: A.test.\n    balance: load\n    connect-timeout: 1s\n    slice-from: 0B\n    origins: [http://x, http://y]\n  - path: /api\n    hosts: a.test\n    origins: http://z\n"))
	if err != nil || len(c.Sites) != 2 || !c.Sites[0].Balance || c.Sites[0].Hosts[0] != "a.test" || c.Sites[0].ConnectTimeout != time.Second || c.Sites[0].SliceFrom >= 0 || c.Sites[1].SliceFrom != 0 || !c.Reverse() || !c.TrustedProxies[1].Addr().Is4() {
		t.Errorf("%+v, %v, %v", c.Sites, c.TrustedProxies, err)
	}
}
