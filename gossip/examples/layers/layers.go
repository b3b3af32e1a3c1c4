// Package layers shares the layers of images and artifacts between the machines that pull them with oras.land/oras-go:
// an [http.RoundTripper] under its client gets a blob from a machine that has it, instead of the registry. README.md
// says what its maintainers would ask first.
package layers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// Layers shares the blobs of a store, such as one of content/oci. Put it under the client of a remote.Repository, give
// Copied to oras.CopyOptions as PostCopy, and serve it at the Node's Service. It is safe for concurrent use.
type Layers struct {
	Node     *gossip.Node            // advertises the blobs
	Siblings *sibling.Client         // its Locator is the Node
	Store    content.ReadOnlyStorage // has what this machine has pulled
	Registry http.RoundTripper       // http.DefaultTransport, for example
}

// Copied advertises a blob that is in the store.
func (l *Layers) Copied(_ context.Context, d ocispec.Descriptor) error {
	if id := identity(d.Digest); !l.Node.Holdings().Has(id) {
		l.Node.Holdings().Add(id)
	}
	return nil
}

// Deleted takes back what Copied has advertised. Call it before the blob leaves the store.
func (l *Layers) Deleted(d digest.Digest) { l.Node.Holdings().Remove(identity(d)) }

// A blob has one address in the cluster, whichever registry and repository it is from.
func blobURL(d digest.Digest) *url.URL {
	return &url.URL{Scheme: "http", Host: "layer.invalid", Path: "/" + d.String()}
}

func identity(d digest.Digest) string { return sibling.Identity(&http.Request{URL: blobURL(d)}) }

var blobPath = regexp.MustCompile(`^/v2/.+/blobs/(sha256:[0-9a-f]{64})$`)

// RoundTrip implements [http.RoundTripper]. What is no whole blob goes to the registry: manifests, tags, uploads,
// ranges and the storage to which registries redirect. A sibling is asked only if the registry answers HEAD with the
// client's credentials, so that it goes on deciding who may pull. Siblings do not see these.
func (l *Layers) RoundTrip(r *http.Request) (*http.Response, error) {
	path := blobPath.FindStringSubmatch(r.URL.Path)
	if r.Method != http.MethodGet || r.Header.Get("Range") != "" || path == nil {
		return l.Registry.RoundTrip(r)
	}
	d := digest.Digest(path[1])
	if len(l.Node.Candidates(nil, identity(d))) == 0 || !l.allowed(r) {
		return l.Registry.RoundTrip(r)
	}
	fetch := source(func(to *http.Request) (*http.Response, error) { return l.Registry.RoundTrip(r.Clone(to.Context())) })
	asked := (&http.Request{Method: http.MethodGet, URL: blobURL(d), Header: http.Header{}}).WithContext(r.Context())
	resp, err := (&sibling.Transport{Siblings: l.Siblings, Origin: fetch}).RoundTrip(asked)
	if err != nil {
		return nil, err
	}
	if peer := sibling.PeerOf(resp.Request.Context()); peer != "" {
		resp.Body = &checked{resp.Body, d.Verifier(), func() { l.Siblings.Accuse(peer, true) }}
	}
	resp.Request = r
	return resp, nil
}

// allowed reports whether the registry would send the blob, or redirect to it.
func (l *Layers) allowed(r *http.Request) bool {
	head := r.Clone(r.Context())
	head.Method = http.MethodHead
	resp, err := l.Registry.RoundTrip(head)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode >= 200 && resp.StatusCode < 400
}

// checked reads a blob of a sibling. One with other bytes than its digest says is accused; the client refuses it, too.
type checked struct {
	io.ReadCloser
	sum    digest.Verifier
	accuse func()
}

func (c *checked) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.sum.Write(b[:n])
	if err == io.EOF && !c.sum.Verified() {
		c.accuse()
		return n, errors.New("layers: a sibling sent another blob than was asked for")
	}
	return n, err
}

// ServeHTTP answers the other machines, from the store alone.
func (l *Layers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	find := source(func(r *http.Request) (*http.Response, error) {
		body, err := l.Store.Fetch(r.Context(), ocispec.Descriptor{Digest: digest.Digest(r.URL.Path[1:])})
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, ContentLength: -1}, err
	})
	(&sibling.Handler{Name: l.Node.Name(), Cache: find}).ServeHTTP(w, r)
}

type source func(*http.Request) (*http.Response, error)

func (s source) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }
