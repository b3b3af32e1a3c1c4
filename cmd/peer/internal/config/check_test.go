package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMistakes(t *testing.T) {
	plain := write(t, "plain", "x")
	short := write(t, "short", "0123456789\n")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"name with blank":        {[]string{"--name", "a b"}, `--name "a b" contains ' '`},
		"a name of dots":         {[]string{"--name", ".."}, `--name ".." has nothing but dots`},
		"a name of one dot":      {[]string{"--name", "."}, `--name "." has nothing but dots`},
		"objects beyond memory":  {[]string{"--memory-limit", "256MiB", "--memory-size", "10GiB"}, `--memory-size is more than --memory-limit`},
		"objects of a digest":    {[]string{"--objects", "60000000"}, `--objects "60000000" is too many: use a higher --false-positives, since other peers refuse its digest`},
		"objects of rare lies":   {[]string{"--objects", "20000000", "--false-positives", "1e-9"}, "67108864 allowed"},
		"long name":              {[]string{"--name", strings.Repeat("n", 64)}, "longer than 63"},
		"size without unit":      {[]string{"--store-size", "10"}, `--store-size "10" is not a size: want a whole number and one of B, KiB`},
		"size of one letter":     {[]string{"--store-size", "10G"}, "is not a size: want "},
		"size in lower case":     {[]string{"--store-size", "10gb"}, "GB, TB, such as 512MiB"},
		"negative size":          {[]string{"--store-size=-1GiB"}, "is not a size"},
		"fraction":               {[]string{"--store-size", "1.5GiB"}, "is not a size"},
		"size with blank":        {[]string{"--store-size", "1 GiB"}, "is not a size"},
		"huge size":              {[]string{"--store-size", "9999999999TiB"}, "more bytes than 64 bits"},
		"negative, apart":        {[]string{"--publish", "-1s"}, `--publish "-1s" is negative`},
		"negative count":         {[]string{"--objects", "-5"}, `--objects "-5" is not a whole number`},
		"tiny size":              {[]string{"--store-size", "1KiB"}, "less than 1MiB"},
		"empty size":             {[]string{"--store-size", ""}, "--store-size is not a size"},
		"port of letters":        {[]string{"--listen", "127.0.0.1:http"}, `has port "http", which is not a number`},
		"url to listen on":       {[]string{"--listen", "http://127.0.0.1:80"}, "is not HOST:PORT"},
		"listen, no port":        {[]string{"--listen", "a"}, "such as a:3128"},
		"admin, no port":         {[]string{"--admin", "a"}, "such as a:3129"},
		"bare IPv6":              {[]string{"--gossip", "::1:7946"}, "in brackets"},
		"one address twice":      {[]string{"--admin", "127.0.0.1:3128"}, "--admin \"127.0.0.1:3128\" is also the address of --listen 127.0.0.1:3128"},
		"wildcard covers":        {[]string{"--gossip", ":3128", "--advertise", "h"}, "is also the address of --listen"},
		"advertised port":        {[]string{"--advertise", "h:0"}, "is not a host"},
		"advertised wildcard":    {[]string{"--advertise", "0.0.0.0"}, "is not a host"},
		"srv with a port":        {[]string{"--join", "srv:cache:7946"}, "want srv:NAME without a port"},
		"srv without a name":     {[]string{"--join", "srv:"}, "is not a name of SRV records"},
		"out of reach":           {[]string{"--join", "10.0.0.7:7946"}, `--gossip "127.0.0.1:7946" cannot be reached by the peer that --join 10.0.0.7:7946 names`},
		"store is a file":        {[]string{"--store", plain}, "is a file, not a directory"},
		"store below a file":     {[]string{"--store", filepath.Join(plain, "x")}, "cannot be made: " + plain + " is a file"},
		"log is a directory":     {[]string{"--access-log", filepath.Dir(plain)}, "is a directory"},
		"log below a file":       {[]string{"--access-log", filepath.Join(plain, "x")}, "cannot be made: "},
		"negative memory":        {[]string{"--memory-limit=-1GiB"}, "is not a size"},
		"little memory":          {[]string{"--memory-limit", "31MiB"}, "--memory-limit \"31MiB\" is less than 32MiB"},
		"no secret file":         {[]string{"--secret-file", plain + "x"}, "cannot be read: no such file or directory"},
		"short secret":           {[]string{"--secret-file", short}, "holds 10 bytes, want at least 16 (head -c 32 /dev/urandom | base64 makes some)"},
		"no secret":              {[]string{"--secret-file", write(t, "empty", "\n\n")}, "holds 0 bytes, want at least 16"},
		"short second secret":    {[]string{"--secret-file", write(t, "second", "0123456789abcdef\n\n0123\n")}, "holds 4 bytes in line 3, want at least 16"},
		"secret twice":           {[]string{"--secret-file", write(t, "twice", "0123456789abcdef\n0123456789abcdef\n")}, "repeats a secret in line 2"},
		"too many secrets":       {[]string{"--secret-file", write(t, "many", "0123456789abcdef0\n0123456789abcdef1\n0123456789abcdef2\n0123456789abcdef3\n0123456789abcdef4\n")}, "holds 5 secrets, want at most 4"},
		"long secret":            {[]string{"--secret-file", write(t, "long", strings.Repeat("x", 5000))}, "more than 4096"},
		"origin is the peer":     {[]string{"--origin", "http://127.0.0.1:3128"}, `--origin "http://127.0.0.1:3128" is this peer's own --listen 127.0.0.1:3128: requests would come round`},
		"origin by its name":     {[]string{"--origin", "http://localhost:3129"}, "is this peer's own --admin 127.0.0.1:3129"},
		"origin by default":      {[]string{"--listen", ":80", "--advertise", "10.0.0.1", "--origin", "http://10.0.0.1"}, "is this peer's own --listen :80"},
		"origin on loopback":     {[]string{"--listen", ":80", "--advertise", "10.0.0.1", "--origin", "http://[::1]/"}, "is this peer's own --listen :80"},
		"an address with a zone": {[]string{"--gossip", "[fe80::1%eth0]:7946"}, `--gossip "[fe80::1%eth0]:7946" has a zone`},
		"listen with a zone":     {[]string{"--listen", "[fe80::1%eth0]:80", "--gossip", "[fd00::1]:7946"}, `--listen "[fe80::1%eth0]:80" has a zone`},
		"origin without host":    {[]string{"--origin", "http:///x"}, "has no host"},
		"origin with query":      {[]string{"--origin", "http://x/?a"}, "no user, query or fragment"},
		"origin with password":   {[]string{"--origin", "http://u:p@x/"}, "no user, query or fragment"},
		"origin, no scheme":      {[]string{"--origin", "10.0.0.9:8080"}, `"10.0.0.9:8080" is not an http, https or h2c URL, such as http://`},
		"join, a URL":            {[]string{"--join", "http://10.0.0.2:7946"}, "is not HOST:PORT: it looks like a URL"},
		"listen, a port":         {[]string{"--listen", "3128"}, `"3128" has no host: want HOST:PORT, such as 127.0.0.1:3128, or :3128 for all`},
		"origin unparsable":      {[]string{"--origin", "http://x:y/"}, "is not a URL"},
		"proxies, no network":    {[]string{"--origin", "http://x", "--trusted-proxies", "10.0.0.0/8,lb"}, `--trusted-proxies "lb" is not a network`},
		"proxies, long prefix":   {[]string{"--origin", "http://x", "--trusted-proxies", "10.0.0.1/8"}, "did you mean 10.0.0.0/8?"},
		"proxies, everybody":     {[]string{"--origin", "http://x", "--trusted-proxies", "0.0.0.0/0"}, `--trusted-proxies "0.0.0.0/0" trusts everybody`},
		"host, no origin":        {[]string{"--preserve-host", "on"}, "is for --origin"},
		"a field that is none":   {[]string{"--pass-field", "X Foo"}, `--pass-field "X Foo" is not the name of a header field`},
		"header, too short":      {[]string{"--max-header-size", "1KiB"}, "--max-header-size"},
		"proxies of a forward":   {[]string{"--trusted-proxies", "10.0.0.0/8"}, "is for a reverse proxy"},
		"purge by loopback":      {[]string{"--purge-client", "127.0.0.1"}, `--purge-client "127.0.0.1/32" is loopback, from where everybody comes`},
		"purge by loopback 6":    {[]string{"--purge-client", "10.0.0.9,::1"}, `"::1/128" is loopback`},
		"purge by everybody":     {[]string{"--purge-client", "0.0.0.0/0"}, `--purge-client "0.0.0.0/0" is half of the world; name the machines that purge, or give it twice`},
		"purge by everybody 6":   {[]string{"--purge-client", "2000::/3"}, "half of the world"},
		"purge, all private":     {[]string{"--purge-client", "10.0.0.0/8"}, "a private network as a whole"},
		"purge, more private":    {[]string{"--purge-client", "192.0.0.0/8"}, "a private network as a whole"},
		"purge, private IPv6":    {[]string{"--purge-client", "fd00::/8"}, "a private network as a whole"},
		"purge by a proxy":       {[]string{"--origin", "http://x", "--trusted-proxies", "10.0.0.7", "--purge-client", "10.0.0.0/24"}, "has proxies of --trusted-proxies"},
		"objects":                {[]string{"--objects", "many"}, "is not a whole number"},
		"more than planned for":  {[]string{"--objects", "10000000000"}, "is too many"},
		"objects of much memory": {[]string{"--objects", "120000000", "--false-positives", "0.1"}, "is too many"},
		"listen, loopback":       {[]string{"--listen", "127.0.0.1:3128", "--gossip", "10.0.0.1:7946"}, "cannot be reached by the peers that --gossip"},
		"false positives":        {[]string{"--false-positives", "1"}, "is not a number between 1e-9 and 0.5"},
		"not a number":           {[]string{"--false-positives", "NaN"}, "is not a number between 1e-9 and 0.5"},
		"time without unit":      {[]string{"--drain", "10"}, "is not a time"},
		"negative time":          {[]string{"--drain=-1s"}, "is negative"},
		"hasty publication":      {[]string{"--publish", "1ms"}, "is not between 10ms and 1h"},
		"log format":             {[]string{"--log-format", "jsno"}, `is none of text, json, did you mean "json"?`},
		"https, no cert":         {[]string{"--https", ":443", "--advertise", "h"}, "--https-cert must be given as often as --https-key"},
		"https, broken cert":     {[]string{"--https", "127.0.0.1:443", "--https-cert", plain, "--https-key", plain}, "cannot be used"},
		"cert without https":     {[]string{"--https-cert", plain}, "needs --https"},
		"https at listen":        {[]string{"--https", "127.0.0.1:3128"}, "is also the address of --listen 127.0.0.1:3128"},
		"access log format":      {[]string{"--access-log-format", "combind"}, `is none of combined, json, did you mean "combined"?`},
		"access log nowhere":     {[]string{"--access-log", plain + "/x/y"}, "--access-log \"" + plain + "/x/y\" cannot be made"},
		"access log directory":   {[]string{"--access-log", filepath.Dir(plain)}, "is a directory"},
		"no such file":           {[]string{"--config", plain + "x"}, "--config: open " + plain + "x: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(t, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Load(%q) = %v, want %q", c.args, err, c.want)
			}
		})
	}
}

// What nobody sees in a file of secrets is no part of one: two peers whose files look alike have the same.
func TestSecretsThatLookAlike(t *testing.T) {
	for _, text := range []string{"0123456789abcdef", "0123456789abcdef\r\n", "\ufeff0123456789abcdef\n", " 0123456789abcdef\t\n", "\n\n0123456789abcdef\n \n"} {
		if c, _, err := load(t, "--secret-file", write(t, "secret", text)); err != nil || string(c.Secret) != "0123456789abcdef" || len(c.AcceptSecrets) > 0 {
			t.Errorf("%q is the secret %q, and %d more, %v", text, c.Secret, len(c.AcceptSecrets), err)
		}
	}
}

// No advice overwrites the file that was named: it may be the wrong one.
func TestAdviceOverwritesNothing(t *testing.T) {
	for _, text := range []string{"", "short\n", "0123456789abcdef\nshort\n"} {
		file := write(t, "hostname", text)
		if _, _, err := load(t, "--secret-file", file); err == nil || strings.Contains(err.Error(), ">") {
			t.Errorf("Load(--secret-file of %q) = %v", text, err)
		}
	}
}

// What a store's default number of objects makes is not more than other peers take, and a memory limit below the default memory for
// objects is no mistake.
func TestDefaultsFit(t *testing.T) {
	for _, args := range [][]string{{"--store-size", "100TiB"}, {"--memory-limit", "48MiB"}, {"--objects", "45000000"}} {
		if _, _, err := load(t, args...); err != nil {
			t.Errorf("Load(%q) = %v", args, err)
		}
	}
}

// Networks of strangers may purge if they are given twice, and others at once.
func TestPurgeClients(t *testing.T) {
	for _, list := range []string{"", "10.0.0.9", "10.1.0.0/16,192.168.7.0/24,fd00:1::/32,203.0.113.0/24", "127.0.0.1,127.0.0.1", "0.0.0.0/0,10.0.0.9,0.0.0.0/0"} {
		if c, _, err := load(t, "--purge-client", list); err != nil || list == "" && len(c.PurgeClients) > 0 {
			t.Errorf("Load(--purge-client %s) = %v, %v", list, c.PurgeClients, err)
		}
	}
}

func TestDefaultsAreRight(t *testing.T) {
	c, _, err := load(t)
	host, _ := os.Hostname()
	if err != nil || c.Name != host || c.StoreSize != 1<<30 || c.Objects != 32768 || c.Secret != nil || c.Origin != nil || c.Advertise != "" {
		t.Errorf("Load() = %+v, %v", c, err)
	}
}

func TestAdvertise(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"loopback":          {nil, ""},
		"given":             {[]string{"--listen", ":80", "--gossip", ":81", "--advertise", "h"}, "h"},
		"wildcard gossip":   {[]string{"--gossip", "0.0.0.0:81", "--listen", "127.0.0.2:80"}, "127.0.0.2"},
		"wildcard listen":   {[]string{"--gossip", "127.0.0.3:81", "--listen", "[::]:80"}, "127.0.0.3"},
		"loopback and join": {[]string{"--join", "localhost:1,127.0.0.1:2,[::1]:3,name:4"}, ""},
		"a mapped port":     {[]string{"--listen", ":80", "--gossip", ":81", "--advertise", "h:17946"}, "h:17946"},
		"a mapped port, 6":  {[]string{"--listen", ":80", "--gossip", ":81", "--advertise", "[::2]:17946"}, "[::2]:17946"},
		"behind a port map": {[]string{"--join", "10.0.0.7:1", "--advertise", "10.0.0.8"}, "10.0.0.8"},
	} {
		if got, _, err := load(t, c.args...); err != nil || got.Advertise != c.want {
			t.Errorf("%s: Advertise = %q, %v, want %q", name, got.Advertise, err, c.want)
		}
	}
	for advertise, want := range map[string][2]string{"h": {"h", ""}, "h:1": {"h", "1"}, "::2": {"::2", ""}, "[::2]:3": {"::2", "3"}, "": {"", ""}} {
		c := Config{Advertise: advertise}
		if host, port := c.Advertised(); host != want[0] || port != want[1] {
			t.Errorf("Advertised() of %q = %q, %q, want %q", advertise, host, port, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "00": 0, "0B": 0, "7B": 7, "512MiB": 512 << 20, "10GiB": 10 << 30, "2TiB": 2 << 40,
		"3kB": 3000, "3MB": 3e6, "10GB": 1e10, "1TB": 1e12, "1KiB": 1024, "9223372036854775807B": 1<<63 - 1,
	} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "x", "10", "1k", "1KB", "1Gi", "1gib", "GiB", "1QiB", "1 GiB", "+1GiB", "0x10B", "1e3B", "9223372036854775808B", "8388608TiB", "１GiB"} {
		if n, err := ParseSize(s); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", s, n)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"store", "store-size", "secret-file", "listen", "join"}
	for word, want := range map[string]string{
		"stoer": "store", "stroe-size": "store-size", "storesize": "store-size", "secretfile": "secret-file",
		"lisen": "listen", "jion": "join", "xyz": "", "": "", "completely-different": "",
	} {
		if got := nearest(word, names); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
	for pair, want := range map[[2]string]int{{"ab", "ba"}: 2, {"abc", "abc"}: 0, {"", "abc"}: 3, {"kitten", "sitting"}: 3, {"ca", "abc"}: 3} {
		if got := distance(pair[0], pair[1]); got != want {
			t.Errorf("distance(%q, %q) = %d, want %d", pair[0], pair[1], got, want)
		}
	}
}
