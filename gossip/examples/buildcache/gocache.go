package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Go answers the go command, which starts it for each build (GOCACHEPROG). Outputs are files in Dir, named by their
// SHA-256, since the go command opens them itself. What goes wrong at the Server is a miss, so that a build goes on
// without it.
type Go struct {
	Server string // URL of the cache of this machine
	Dir    string
}

// A message of the go command and the answer to it; see cmd/go/internal/cacheprog. Byte slices are base64.
type (
	message struct {
		ID       int64
		Command  string
		ActionID []byte `json:",omitempty"`
		OutputID []byte `json:",omitempty"`
		BodySize int64  `json:",omitempty"`
	}
	answer struct {
		ID            int64
		Err           string     `json:",omitempty"`
		KnownCommands []string   `json:",omitempty"`
		Miss          bool       `json:",omitempty"`
		OutputID      []byte     `json:",omitempty"`
		Size          int64      `json:",omitempty"`
		Time          *time.Time `json:",omitempty"`
		DiskPath      string     `json:",omitempty"`
	}
)

const (
	atOnce = 32                 // messages
	unused = 5 * 24 * time.Hour // the age at which a file goes that no build has used since, as in Go's own cache
)

var client = &http.Client{Timeout: 5 * time.Minute}

// Serve answers the messages from in until the go command closes it.
func (g *Go) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	if err := os.MkdirAll(g.Dir, 0o700); err != nil {
		return err
	}
	var mu sync.Mutex
	var failed error
	send := func(a answer) {
		mu.Lock()
		defer mu.Unlock()
		b, _ := json.Marshal(a)
		if _, err := out.Write(append(b, '\n')); err != nil && failed == nil {
			failed = err
		}
	}
	send(answer{KnownCommands: []string{"get", "put", "close"}})
	var all sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for d := json.NewDecoder(bufio.NewReader(in)); ; { // until the end of in
		var m message
		var body []byte
		err := d.Decode(&m)
		if err == nil && m.Command == "put" && m.BodySize > 0 {
			err = d.Decode(&body)
		}
		if err != nil || m.Command == "close" {
			all.Wait()
			g.prune()
			if err == nil {
				send(answer{ID: m.ID})
			}
			if err == nil || errors.Is(err, io.EOF) {
				return failed
			}
			return fmt.Errorf("a message of the go command: %w", err)
		}
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			switch m.Command {
			case "get":
				send(g.get(ctx, m))
			case "put":
				a := g.put(m, body)
				send(a)
				if a.Err != "" {
					return
				}
				// if not, others build it again
				if resp, err := g.ask(ctx, http.MethodPut, g.url(m), bytes.NewReader(body)); err == nil {
					resp.Body.Close()
				}
			default:
				send(answer{ID: m.ID, Err: "unknown command " + m.Command})
			}
		})
	}
}

// url returns that of an action.
func (g *Go) url(m message) string { return fmt.Sprintf("%s/go/%x", g.Server, m.ActionID) }

// ask sends a request to the Server, and returns an answer that is not an error.
func (g *Go) ask(ctx context.Context, method, url string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(r)
	if err == nil && resp.StatusCode >= 300 {
		resp.Body.Close()
		return nil, errors.New(resp.Status)
	}
	return resp, err
}

// get finds the output of an action: the entry by HEAD, and the bytes only if there is no file of them yet.
func (g *Go) get(ctx context.Context, m message) answer {
	miss := answer{ID: m.ID, Miss: true}
	head, err := g.ask(ctx, http.MethodHead, g.url(m), nil)
	if err != nil {
		return miss
	}
	head.Body.Close()
	of, ok := parseSum(strings.Trim(head.Header.Get("ETag"), `"`))
	if !ok {
		return miss
	}
	path := filepath.Join(g.Dir, of.String())
	if info, err := os.Stat(path); err == nil && info.Size() == head.ContentLength {
		os.Chtimes(path, time.Time{}, time.Now())
	} else {
		resp, err := g.ask(ctx, http.MethodGet, g.Server+"/cas/"+of.String(), nil)
		if err != nil {
			return miss
		}
		defer resp.Body.Close()
		if err := g.keep(resp.Body, of); err != nil {
			return miss
		}
	}
	made, err := http.ParseTime(head.Header.Get("Last-Modified"))
	if err != nil {
		return miss
	}
	return answer{ID: m.ID, OutputID: of[:], Size: head.ContentLength, Time: &made, DiskPath: path}
}

// put makes a file of an output.
func (g *Go) put(m message, body []byte) answer {
	of := sum(sha256.Sum256(body))
	switch {
	case int64(len(body)) != m.BodySize:
		return answer{ID: m.ID, Err: fmt.Sprintf("%d bytes came instead of %d", len(body), m.BodySize)}
	case !bytes.Equal(of[:], m.OutputID):
		return answer{ID: m.ID, Err: "the output's identity is not its SHA-256"}
	}
	if err := g.keep(bytes.NewReader(body), of); err != nil {
		return answer{ID: m.ID, Err: err.Error()}
	}
	return answer{ID: m.ID, DiskPath: filepath.Join(g.Dir, of.String())}
}

// keep makes the file of an output, whole or not at all.
func (g *Go) keep(r io.Reader, of sum) (err error) {
	f, err := os.CreateTemp(g.Dir, "new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // does nothing after Rename
	_, err = copyChecked(f, r, of)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(g.Dir, of.String()))
}

// prune removes files that no build has used for days.
func (g *Go) prune() {
	list, _ := os.ReadDir(g.Dir)
	for _, f := range list {
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > unused {
			os.Remove(filepath.Join(g.Dir, f.Name()))
		}
	}
}
