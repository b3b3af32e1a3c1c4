package layers

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A registry has one image, for who has the password. Blobs are redirected to a storage, as most registries do.
type registry struct {
	*httptest.Server
	image    *memory.Store
	manifest ocispec.Descriptor
	layers   []ocispec.Descriptor
	mu       sync.Mutex
	blobs    int // sent
}

func newRegistry(t *testing.T) *registry {
	g := &registry{image: memory.New()}
	for range 3 {
		body := make([]byte, 100_000)
		rand.Read(body)
		layer := content.NewDescriptorFromBytes(ocispec.MediaTypeImageLayer, body)
		if err := g.image.Push(t.Context(), layer, bytes.NewReader(body)); err != nil {
			t.Fatal(err)
		}
		g.layers = append(g.layers, layer)
	}
	var err error
	g.manifest, err = oras.PackManifest(t.Context(), g.image, oras.PackManifestVersion1_1, "application/vnd.test", oras.PackManifestOptions{Layers: g.layers})
	if err != nil {
		t.Fatal(err)
	}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	last := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	_, password, _ := r.BasicAuth()
	storage := strings.HasPrefix(r.URL.Path, "/storage/")
	switch {
	case !storage && password != "secret":
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
	case strings.Contains(r.URL.Path, "/blobs/"):
		http.Redirect(w, r, "/storage/"+last, http.StatusTemporaryRedirect)
	default:
		of := ocispec.Descriptor{Digest: digest.Digest(last)}
		if strings.Contains(r.URL.Path, "/manifests/") {
			of = g.manifest
			w.Header().Set("Content-Type", of.MediaType)
		}
		all, err := content.Successors(context.Background(), g.image, g.manifest)
		for _, d := range append(all, g.manifest) {
			if d.Digest == of.Digest {
				of = d
			}
		}
		body, err2 := content.FetchAll(r.Context(), g.image, of)
		if err != nil || err2 != nil {
			http.NotFound(w, r)
			return
		}
		if storage {
			g.mu.Lock()
			g.blobs++
			g.mu.Unlock()
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	}
}

func (g *registry) sent() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.blobs
}

// A machine pulls images.
type machine struct {
	*Layers
	dir   string
	store *oci.Store
	heard chan struct{} // gets a value when a digest has changed
}

func newMachine(t *testing.T, name string, join ...string) *machine {
	m := &machine{dir: t.TempDir(), heard: make(chan struct{}, 1)}
	server := httptest.NewUnstartedServer(nil)
	cfg := gossip.Config{Name: name, Bind: "127.0.0.1:0", Join: join, Secret: []byte("at least 16 bytes, better random"),
		Service: server.Listener.Addr().String(), Objects: 1000, Logger: slog.New(slog.DiscardHandler)}
	cfg.Advanced.Hooks.Event = func(exchange.Event) {
		select {
		case m.heard <- struct{}{}:
		default: // it is told already
		}
	}
	node, err := gossip.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	siblings, err := sibling.New(sibling.Config{Name: name, Locator: node})
	if err != nil {
		t.Fatal(err)
	}
	if m.store, err = oci.NewWithContext(t.Context(), m.dir); err != nil {
		t.Fatal(err)
	}
	m.Layers = &Layers{Node: node, Siblings: siblings, Store: m.store, Registry: http.DefaultTransport}
	server.Config.Handler = m.Layers
	server.Start()
	t.Cleanup(func() { node.Close(); server.Close() })
	if err := node.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// pull copies the image with oras.
func (m *machine) pull(ctx context.Context, g *registry, password string) error {
	repo, err := remote.NewRepository(g.Listener.Addr().String() + "/team/app")
	if err != nil {
		return err
	}
	repo.PlainHTTP = true
	credential := auth.StaticCredential(repo.Reference.Registry, auth.Credential{Username: "u", Password: password})
	repo.Client = &auth.Client{Client: &http.Client{Transport: m.Layers}, Credential: credential}
	o := oras.DefaultCopyOptions
	o.PostCopy = m.Copied // advertises what has arrived
	_, err = oras.Copy(ctx, repo, "latest", m.store, "latest", o)
	return err
}

// knows waits until m's digests name a machine that has all blobs.
func (m *machine) knows(t *testing.T, g *registry) {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for _, d := range append(g.layers[:3:3], ocispec.DescriptorEmptyJSON) {
		for len(m.Node.Candidates(nil, identity(d.Digest))) == 0 {
			select {
			case <-m.heard:
			case <-timeout:
				t.Fatal("the digest has not arrived")
			}
		}
	}
}

func (m *machine) file(d ocispec.Descriptor) string {
	return filepath.Join(m.dir, "blobs", "sha256", d.Digest.Encoded())
}

// TestPull: what one machine has pulled, another gets from it, and the registry goes on deciding who may have it.
func TestPull(t *testing.T) {
	g := newRegistry(t)
	a := newMachine(t, "a")
	if err := a.pull(t.Context(), g, "secret"); err != nil || g.sent() != 4 {
		t.Fatalf("a: %v, %d blobs from the registry; want 3 layers and the config", err, g.sent())
	}
	b := newMachine(t, "b", a.Node.Addr())
	b.knows(t, g)
	if err := b.pull(t.Context(), g, "guessed"); err == nil {
		t.Error("b has the image without the password")
	}
	if resp, err := (&http.Client{Transport: b.Layers}).Get(g.URL + "/v2/team/app/blobs/" + g.layers[0].Digest.String()); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("b, without a password: %+v, %v", resp, err)
	}
	if err := b.pull(t.Context(), g, "secret"); err != nil || g.sent() != 4 {
		t.Errorf("b: %v, %d blobs from the registry, want still 4", err, g.sent())
	}
	for _, d := range g.layers {
		if x, err := os.ReadFile(b.file(d)); err != nil || digest.FromBytes(x) != d.Digest {
			t.Errorf("b has another layer %s: %v", d.Digest, err)
		}
	}
	if got := b.Siblings.Stats(); got.Hits != 4 {
		t.Errorf("b: %+v", got)
	}
}

// TestDamage: oras refuses what a sibling has damaged, and the next pull gets it from the registry.
func TestDamage(t *testing.T) {
	g := newRegistry(t)
	a := newMachine(t, "a")
	if err := a.pull(t.Context(), g, "secret"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(a.file(g.layers[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.file(g.layers[1]), make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newMachine(t, "b", a.Node.Addr())
	b.knows(t, g)
	if err := b.pull(t.Context(), g, "secret"); err == nil || !strings.Contains(err.Error(), "another blob") {
		t.Errorf("b has taken a damaged layer: %v", err)
	}
	before := g.sent()
	if err := b.pull(t.Context(), g, "secret"); err != nil || g.sent() == before {
		t.Errorf("b, again: %v, %d blobs from the registry, %d before", err, g.sent(), before)
	}
}

// TestGone: a blob that has left the store without a word is a false hit, and comes from the registry.
func TestGone(t *testing.T) {
	g := newRegistry(t)
	a := newMachine(t, "a")
	if err := a.pull(t.Context(), g, "secret"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(a.file(g.layers[2])); err != nil {
		t.Fatal(err)
	}
	b := newMachine(t, "b", a.Node.Addr())
	b.knows(t, g)
	if err := b.pull(t.Context(), g, "secret"); err != nil || g.sent() != 5 {
		t.Errorf("b: %v, %d blobs from the registry, want 5", err, g.sent())
	}
	a.Deleted(g.layers[2].Digest)
	if a.Node.Holdings().Has(identity(g.layers[2].Digest)) {
		t.Error("a advertises what it has deleted")
	}
}

// TestOthers: all but whole blobs goes to the registry as it is.
func TestOthers(t *testing.T) {
	var seen *http.Request
	l := &Layers{Registry: source(func(r *http.Request) (*http.Response, error) {
		seen = r
		return nil, errors.New("the registry's")
	})}
	of := "http://r.test/v2/app/blobs/sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct{ method, url, ranges string }{
		{"HEAD", of, ""}, {"GET", of, "bytes=5-"}, {"POST", "http://r.test/v2/app/blobs/uploads/", ""},
		{"GET", "http://r.test/v2/app/manifests/latest", ""}, {"GET", of + "0", ""},
	} {
		r := httptest.NewRequest(c.method, c.url, io.NopCloser(nil))
		if c.ranges != "" {
			r.Header.Set("Range", c.ranges)
		}
		if _, err := l.RoundTrip(r); err == nil || seen != r {
			t.Errorf("%s %s: %v, and the registry got another request", c.method, c.url, err)
		}
	}
}
