package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// A registry has one image of one layer (OCI distribution specification 1.1), and counts the bytes of layers that
// it sends.
type registry struct {
	blobs map[string][]byte // by digest
	sent  atomic.Int64
}

func newRegistry(layer []byte) (*registry, string) {
	r := &registry{blobs: map[string][]byte{}}
	keep := func(kind string, body []byte) map[string]any {
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(body))
		r.blobs[digest] = body
		return map[string]any{"mediaType": kind, "digest": digest, "size": len(body)}
	}
	of := keep("application/vnd.oci.image.layer.v1.tar", layer)
	config, _ := json.Marshal(map[string]any{"architecture": "amd64", "os": "linux", "rootfs": map[string]any{"type": "layers", "diff_ids": []any{of["digest"]}}})
	manifest, _ := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": keep("application/vnd.oci.image.config.v1+json", config), "layers": []any{of}})
	r.blobs["latest"] = manifest
	return r, of["digest"].(string)
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

// TestSkopeo pulls an image through one peer and then through another: a layer comes from the registry once,
// in slices, and for the second peer from the first.
func TestSkopeo(t *testing.T) {
	skopeo, err := exec.LookPath("skopeo")
	if err != nil {
		t.Skip("skopeo is not here")
	}
	layer := make([]byte, 24<<20)
	rand.NewChaCha8([32]byte{7}).Read(layer)
	from, digest := newRegistry(layer)
	origin := httptest.NewUnstartedServer(from)
	origin.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			c.(*net.TCPConn).SetWriteBuffer(64 << 10) // loopback would take megabytes that nobody reads
		}
	}
	origin.Start()
	defer origin.Close()
	a := inProcess(t, local(t, "a", "--origin", origin.URL))
	b := inProcess(t, local(t, "b", "--origin", origin.URL, "--join", a.gossip))
	pull := func(listen string) {
		t.Helper()
		to := filepath.Join(t.TempDir(), "image")
		if out, err := exec.Command(skopeo, "--insecure-policy", "copy", "--src-tls-verify=false", "docker://"+listen+"/image:latest", "dir:"+to).CombinedOutput(); err != nil {
			t.Fatalf("skopeo: %v\n%s", err, out)
		}
		got, err := os.ReadFile(filepath.Join(to, strings.TrimPrefix(digest, "sha256:")))
		if err != nil || !bytes.Equal(got, layer) {
			t.Fatalf("the layer has other bytes: %d, %v", len(got), err)
		}
	}
	pull(a.listen)
	first := from.sent.Load()
	if first > int64(len(layer))+2<<20 { // some were on their way when the first answer was cut to a slice
		t.Errorf("the registry sent %d bytes for a layer of %d", first, len(layer))
	}
	pull(a.listen)
	if again := from.sent.Load() - first; again > 1<<20 {
		t.Errorf("the registry sent %d bytes for a layer that is stored", again)
	}
	eventually(t, time.Minute, "b knows what a holds", func() bool {
		s, err := admin.Client(b.admin).Status(t.Context())
		return err == nil && len(s.Members) == 1 && s.Members[0].Current && s.Members[0].Keys >= 24
	})
	before := from.sent.Load()
	pull(b.listen)
	again := from.sent.Load() - before
	if again > 3<<20 {
		t.Errorf("the registry sent %d bytes for a layer that a sibling holds", again)
	}
	t.Logf("a layer of %d bytes: %d from the registry, and %d more for the second peer", len(layer), first, again)
}
