package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A registry has one image (OCI distribution specification 1.1), and counts the bytes that it sends.
type registry struct {
	*httptest.Server
	layers map[string][]byte // by digest
	blobs  map[string][]byte // with the layers
	sent   atomic.Int64
}

func newRegistry(t *testing.T, sizes ...int) *registry {
	r := &registry{layers: map[string][]byte{}, blobs: map[string][]byte{}}
	keep := func(kind string, body []byte) map[string]any {
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(body))
		r.blobs[digest] = body
		return map[string]any{"mediaType": kind, "digest": digest, "size": len(body)}
	}
	var layers, ids []any
	for i, size := range sizes {
		layer := make([]byte, size)
		rand.NewChaCha8([32]byte{byte(i)}).Read(layer)
		of := keep("application/vnd.oci.image.layer.v1.tar", layer)
		layers, ids = append(layers, of), append(ids, of["digest"])
		r.layers[of["digest"].(string)] = layer
	}
	config, _ := json.Marshal(map[string]any{"architecture": "amd64", "os": "linux", "rootfs": map[string]any{"type": "layers", "diff_ids": ids}})
	manifest, _ := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": keep("application/vnd.oci.image.config.v1+json", config), "layers": layers})
	r.blobs["latest"] = manifest
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			c.(*net.TCPConn).SetWriteBuffer(64 << 10) // loopback would take megabytes that nobody reads
		}
	}
	r.Start()
	t.Cleanup(r.Close)
	return r
}

// pull has skopeo copy the image through what listens at addr, and checks the layers.
func (r *registry) pull(t *testing.T, skopeo, addr string) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "image")
	if out, err := exec.Command(skopeo, "--insecure-policy", "copy", "--src-tls-verify=false", "docker://"+addr+"/image:latest", "dir:"+to).CombinedOutput(); err != nil {
		t.Fatalf("skopeo: %v\n%s", err, out)
	}
	for digest, layer := range r.layers {
		got, err := os.ReadFile(filepath.Join(to, strings.TrimPrefix(digest, "sha256:")))
		if err != nil || !bytes.Equal(got, layer) {
			t.Fatalf("layer %s has other bytes: %d, %v", digest, len(got), err)
		}
	}
}

func (r *registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	_, name, _ := strings.Cut(q.URL.Path, "/v2/image/")
	kind, name, _ := strings.Cut(name, "/")
	body := r.blobs[name]
	switch {
	case q.URL.Path == "/v2/":
		return
	case body == nil:
		http.NotFound(w, q)
		return
	case kind == "manifests":
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Cache-Control", "max-age=31536000, immutable")
		w.Header().Set("Etag", `"`+name+`"`)
	}
	sum := sha256.Sum256(body)
	w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sum))
	http.ServeContent(&counting{w, r}, q, "", time.Time{}, bytes.NewReader(body))
}

type counting struct {
	http.ResponseWriter
	r *registry
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.r.sent.Add(int64(n))
	return n, err
}

// TestSkopeo pulls an image through three peers: a layer comes from the registry once, in slices, and for the other peers
// from their siblings, also if one of these is killed in the middle of a layer.
func TestSkopeo(t *testing.T) {
	skopeo, err := exec.LookPath("skopeo")
	if err != nil {
		t.Skip("skopeo is not here")
	}
	from := newRegistry(t, 24<<20, 8<<20)
	const size, slices = 32 << 20, 32
	a := spawn(t, local(t, "a", "--origin", from.URL)...)
	b := spawn(t, local(t, "b", "--origin", from.URL, "--join", a.gossip)...)
	c := spawn(t, local(t, "c", "--origin", from.URL, "--join", a.gossip)...)
	pull := func(through string, p *process, most int64) {
		t.Helper()
		before := from.sent.Load()
		from.pull(t, skopeo, through)
		sent := from.sent.Load() - before
		if sent > most {
			t.Errorf("the registry sent %d bytes for a pull through %s, want %d at most", sent, p.name, most)
		}
		t.Logf("layers of %d bytes: %d from the registry for a pull through %s", size, sent, p.name)
	}
	pull(a.listen, a, size+4<<20) // some were on their way when the first answers were cut to a slice
	pull(a.listen, a, 1<<20)
	eventually(t, time.Minute, "b knows what a holds", func() bool { m, _ := b.member("a"); return m.Current && m.Keys >= slices })
	pull(b.listen, b, 4<<20)
	eventually(t, time.Minute, "c knows what a and b hold", func() bool {
		first, _ := c.member("a")
		second, _ := c.member("b")
		return first.Current && first.Keys >= slices && second.Current && second.Keys >= slices
	})
	slow := newSlow(t, c.listen, size/3, a.kill)
	pull(slow.Listener.Addr().String(), c, 4<<20)
	first, _ := c.member("a")
	second, _ := c.member("b")
	if first.Bytes < 2<<20 || second.Bytes < size/4 {
		t.Errorf("a, which was killed, sent %d bytes to c, and b %d: want a part from each", first.Bytes, second.Bytes)
	}
	if n := c.status().Traffic.BodiesCut; n > 0 {
		t.Errorf("%d bodies were cut", n)
	}
	t.Logf("a sent %d bytes to c before it was killed, and b %d", first.Bytes, second.Bytes)
}

// newSlow returns a proxy that passes on eight megabytes a second, and calls then once when so many bytes have passed.
func newSlow(t *testing.T, to string, after int64, then func()) *httptest.Server {
	var passed atomic.Int64
	var once sync.Once
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to})
	proxy.ModifyResponse = func(r *http.Response) error {
		body := r.Body
		r.Body = readCloser{readFunc(func(p []byte) (int, error) {
			n, err := body.Read(p[:min(len(p), 32<<10)])
			time.Sleep(time.Duration(n) * time.Second / (8 << 20))
			if passed.Add(int64(n)) > after {
				once.Do(then)
			}
			return n, err
		}), body}
		return nil
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

type readCloser struct {
	io.Reader
	io.Closer
}
