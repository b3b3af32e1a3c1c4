package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Peers whose addresses are not the first of their machines, as those of a virtual address or a second interface, share what they
// have: their requests to each other come from the addresses that they are known by.
func TestSecondaryAddresses(t *testing.T) {
	o := newReportOrigin(t)
	o.of["x"] = func(int, *http.Request, net.Conn) string { return "200" + fresh + "||x" }
	var peers [2]started
	for i := range peers {
		at := fmt.Sprintf("127.0.0.%d:0", 5+i)
		args := []string{"run", "--name", fmt.Sprint("second-", i), "--listen", at, "--admin", "127.0.0.1:0", "--gossip", at, "--origin", o.url, "--store", t.TempDir()}
		if i > 0 {
			args = append(args, "--join", peers[0].gossip)
		}
		peers[i] = spawn(t, args...).started
	}
	n := 0
	eventually(t, time.Minute, "a hit at the sibling", func() bool {
		n++
		var how string
		for _, p := range peers {
			resp, err := http.Get(fmt.Sprintf("http://%s/x/%d", p.listen, n))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			how = strings.Join(resp.Header.Values("Cache-Status"), ", ")
			time.Sleep(time.Second / 2) // until it is advertised
		}
		return strings.Contains(how, "detail=sibling")
	})
}
