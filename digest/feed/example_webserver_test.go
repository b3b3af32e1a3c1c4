package feed_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/feed"
)

// A manifest is the one file whose contents change: it names the others.
type manifest struct {
	Version  string          // that is current
	Snapshot file            // of it, in pieces
	Head     []byte          // of the snapshot
	Deltas   map[string]file // to it, by the version that they start from
}

type file struct{ Name, SHA256 string }

// publishFiles writes the files for a plain web server: a snapshot, one delta from each of the
// versions in since, and last the manifest, atomically. Names depend on contents, so nobody
// reads half of one version and half of another.
func publishFiles(dir string, p *feed.Publisher, f *digest.Filter, since []digest.Version) error {
	var errs []error
	write := func(b []byte) file {
		sum := sha256.Sum256(b)
		name := hex.EncodeToString(sum[:8])
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), b, 0o644))
		return file{name, hex.EncodeToString(sum[:])}
	}
	snapshot := f.AppendPieces(nil, 0)
	m := manifest{f.Version().String(), write(snapshot), snapshot[:min(len(snapshot), digest.HeadBytes)], map[string]file{}}
	for _, v := range since {
		m.Deltas[v.String()] = write(p.Since(v))
	}
	b, err := json.Marshal(m)
	temporary := filepath.Join(dir, "manifest.tmp")
	errs = append(errs, err, os.WriteFile(temporary, b, 0o644), os.Rename(temporary, filepath.Join(dir, "manifest.json")))
	return errors.Join(errs...)
}

// get reads a file of at most 64 MiB.
func get(url string) ([]byte, error) {
	r, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, r.Status)
	}
	return io.ReadAll(io.LimitReader(r.Body, 64<<20))
}

// follow brings a replica up to the manifest's current version.
func follow(url string, r *feed.Replica) error {
	b, err := get(url + "/manifest.json")
	var m manifest
	if err = errors.Join(err, json.Unmarshal(b, &m)); err != nil {
		return err
	}
	from := m.Snapshot
	if f := r.Filter(); f != nil {
		if f.Version().String() == m.Version {
			return nil
		}
		if d, ok := m.Deltas[f.Version().String()]; ok {
			from = d
		}
	}
	if b, err = get(url + "/" + from.Name); err != nil {
		return err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != from.SHA256 {
		return fmt.Errorf("%s is not what the manifest says", from.Name)
	}
	_, _, err = r.Handle(b)
	return err
}

// A ranged file is read by range requests.
type ranged struct {
	url   string
	bytes int
}

func (r *ranged) ReadAt(b []byte, at int64) (int, error) {
	request, err := http.NewRequest(http.MethodGet, r.url, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", at, at+int64(len(b))-1))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusPartialContent {
		return 0, fmt.Errorf("%s: %s", r.url, response.Status)
	}
	n, err := io.ReadFull(response.Body, b)
	r.bytes += n
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// A cache's digest is on a plain web server. A client with many lookups follows it; a client
// with one lookup reads one piece of it.
func Example_webServer() {
	dir, err := os.MkdirTemp("", "digest")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()

	geometry, _ := digest.GeometryFor(100_000, 0.001)
	held, _ := digest.NewSet(geometry, 1)
	for i := range 100_000 {
		held.Add(digest.KeyOfString(0, fmt.Sprint("object ", i)))
	}
	publisher, replica := feed.NewPublisher(held, 4<<20), feed.NewReplica(digest.Limits{})
	first := held.Filter().Current().Version()
	if err := errors.Join(publishFiles(dir, publisher, held.Filter().Current(), nil), follow(server.URL, replica)); err != nil {
		panic(err)
	}
	held.Add(digest.KeyOfString(0, "new"))
	publisher.Next()
	if err := errors.Join(publishFiles(dir, publisher, held.Filter().Current(), []digest.Version{first}), follow(server.URL, replica)); err != nil {
		panic(err)
	}
	fmt.Println("follows:", replica.Filter().MayContain(digest.KeyOfString(0, "new")))

	var m manifest
	b, _ := get(server.URL + "/manifest.json")
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&m); err != nil {
		panic(err)
	}
	remote := &ranged{url: server.URL + "/" + m.Snapshot.Name}
	at, err := digest.OpenFilter(remote, m.Head, digest.Limits{})
	if err != nil {
		panic(err)
	}
	yes, err := at.MayContain(digest.KeyOfString(0, "object 7"))
	fmt.Println("asks:", yes, err, remote.bytes < 3500, "of", at.Header().Keys, "keys")
	// Output:
	// follows: true
	// asks: true <nil> true of 100001 keys
}
