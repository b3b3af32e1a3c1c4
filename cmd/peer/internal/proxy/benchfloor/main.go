// Command benchfloor is what bench-nginx.sh holds the peer against besides nginx: the
// least that a proxy of net/http can do. It sends each request on by a Transport and
// copies the answer, and neither looks at headers nor keeps anything.
//
//	benchfloor LISTEN ORIGIN
package main

import (
	"io"
	"log"
	"maps"
	"net/http"
	"os"
	"sync"
)

func main() {
	transport := &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true, ReadBufferSize: 32 << 10}
	buffers := sync.Pool{New: func() any { return new([64 << 10]byte) }}
	log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := r.WithContext(r.Context())
		out.URL.Scheme, out.URL.Host, out.RequestURI = "http", os.Args[2], ""
		resp, err := transport.RoundTrip(out)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		h := w.Header()
		maps.Copy(h, resp.Header)
		w.WriteHeader(resp.StatusCode)
		buf := buffers.Get().(*[64 << 10]byte)
		defer buffers.Put(buf)
		io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{resp.Body}, buf[:])
	})))
}
