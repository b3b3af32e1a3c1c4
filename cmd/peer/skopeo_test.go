package main

import (
	"bytes"
	"context"
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

// pull has skopeo copy the image through what listens at addr into a directory, and checks the layers.
func (r *registry) pull(skopeo, addr, to string) error {
	if out, err := exec.Command(skopeo, "--insecure-policy", "copy", "--src-tls-verify=false", "docker://"+addr+"/image:latest", "dir:"+to).CombinedOutput(); err != nil {
		return fmt.Errorf("skopeo: %w\n%s", err, out)
	}
	for digest, layer := range r.layers {
		got, err := os.ReadFile(filepath.Join(to, strings.TrimPrefix(digest, "sha256:")))
		if err != nil || !bytes.Equal(got, layer) {
			return fmt.Errorf("layer %s has other bytes: %d, %w", digest, len(got), err)
		}
	}
	return nil
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
	pull := func(through string, p *process, most int64, meanwhile func()) {
		t.Helper()
		before, pulled, to := from.sent.Load(), make(chan error, 1), t.TempDir()
		go func() { pulled <- from.pull(skopeo, through, to) }()
		meanwhile()
		if err := <-pulled; err != nil {
			t.Fatal(err)
		}
		sent := from.sent.Load() - before
		if sent > most {
			t.Errorf("the registry sent %d bytes for a pull through %s, want %d at most", sent, p.name, most)
		}
		t.Logf("layers of %d bytes: %d from the registry for a pull through %s", size, sent, p.name)
	}
	pull(a.listen, a, size+4<<20, func() {})
	pull(a.listen, a, 1<<20, func() {})
	eventually(t, time.Minute, "b knows what a holds", func() bool { m, _ := b.member("a"); return m.Current && m.Keys >= slices })
	pull(b.listen, b, 4<<20, func() {})
	eventually(t, time.Minute, "c knows what a and b hold", func() bool {
		first, _ := c.member("a")
		second, _ := c.member("b")
		return first.Current && first.Keys >= slices && second.Current && second.Keys >= slices
	})
	const early = size / 5
	slow, more := newPausing(t, c.listen, early)
	victim, other := a, b
	pull(slow.Listener.Addr().String(), c, 4<<20, func() {
		eventually(t, time.Minute, "one has sent two slices", func() bool {
			if m, _ := c.member(victim.name); m.Bytes < 2<<20 {
				victim, other = other, victim
				return false
			}
			return true
		})
		victim.kill()
		close(more)
	})
	first, _ := c.member(victim.name)
	second, _ := c.member(other.name)
	if second.Bytes < size/4 {
		t.Errorf("%s, which was killed, sent %d bytes to c, and %s %d: want a part from each", victim.name, first.Bytes, other.name, second.Bytes)
	}
	if n := c.status().Traffic.BodiesCut; n > 0 {
		t.Errorf("%d bodies were cut", n)
	}
	t.Logf("%s sent %d bytes to c before it was killed, and %s %d", victim.name, first.Bytes, other.name, second.Bytes)
}

// newPausing returns a proxy that passes on so many bytes of bodies, and the others after more is closed.
func newPausing(t *testing.T, to string, early int64) (proxy *httptest.Server, more chan struct{}) {
	var passed atomic.Int64
	more = make(chan struct{})
	through := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to})
	through.Transport = &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			c.(*net.TCPConn).SetReadBuffer(64 << 10) // loopback would take megabytes
		}
		return c, err
	}}
	through.ModifyResponse = func(r *http.Response) error {
		body, ctx := r.Body, r.Request.Context()
		r.Body = readCloser{readFunc(func(p []byte) (int, error) {
			n, err := body.Read(p[:min(len(p), 32<<10)])
			if passed.Add(int64(n)) > early {
				select {
				case <-more:
				case <-ctx.Done():
				case <-t.Context().Done():
				}
			}
			return n, err
		}), body}
		return nil
	}
	proxy = httptest.NewServer(through)
	t.Cleanup(proxy.Close)
	return proxy, more
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

type readCloser struct {
	io.Reader
	io.Closer
}
