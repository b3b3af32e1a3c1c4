package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	maxAnswer = 128 << 20 // bytes of the longest answer that a client accepts
	patience  = 30 * time.Second
)

// A Client is the address, host:port, of the admin listener of a peer.
type Client string

// Status fetches the peer's status.
func (c Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.get(ctx, "/status.json", &s)
}

// Cluster fetches the status of all peers.
func (c Client) Cluster(ctx context.Context) (all Cluster, err error) {
	return all, c.get(ctx, "/cluster.json", &all)
}

// Misses fetches the last requests that were not answered from the store.
func (c Client) Misses(ctx context.Context, q PastRequest) (all Misses, err error) {
	return all, c.get(ctx, "/misses.json?"+q.values().Encode(), &all)
}

// Why fetches an explanation of how a request would be answered; see [HeaderOf] for the lines of
// its header.
func (c Client) Why(ctx context.Context, method, target string, header []string) (e Explanation, err error) {
	q := url.Values{"url": {target}, "method": {method}, "header": header}
	return e, c.get(ctx, "/why?"+q.Encode(), &e)
}

// Digest fetches the encoding of a peer's digest, see [Source].
func (c Client) Digest(ctx context.Context, peer string) ([]byte, error) {
	return c.call(ctx, http.MethodGet, "/digest?"+url.Values{"peer": {peer}}.Encode(), "", nil)
}

// Purge removes responses. token is that of the peer's [Access].
func (c Client) Purge(ctx context.Context, o PurgeRequest, token string) (r PurgeReport, err error) {
	return r, c.post(ctx, "/purge", token, o, &r)
}

// Reload has the peer read its configuration again. token is that of the peer's [Access].
func (c Client) Reload(ctx context.Context, o ReloadRequest, token string) (r ReloadReport, err error) {
	return r, c.post(ctx, "/reload", token, o, &r)
}

func (c Client) post(ctx context.Context, path, token string, command, report any) error {
	body, err := json.Marshal(command)
	if err != nil {
		return err
	}
	answer, err := c.call(ctx, http.MethodPost, path, token, body)
	return c.decode(answer, err, report)
}

func (c Client) get(ctx context.Context, path string, out any) error {
	answer, err := c.call(ctx, http.MethodGet, path, "", nil)
	return c.decode(answer, err, out)
}

// decode decodes an answer into out, unless err says that there is none.
func (c Client) decode(answer []byte, err error, out any) error {
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("the answer from %s cannot be read: %w", c, err)
	}
	return nil
}

// call sends a request and returns the body of the answer.
func (c Client) call(ctx context.Context, method, path, token string, body []byte) (answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+string(c)+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("no peer can be at %q", string(c))
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if host, _, err := net.SplitHostPort(string(c)); err == nil && strings.Contains(host, ".") {
		r.Host = "localhost" // the check of the host protects browsers only, and would refuse most names
	}
	transport := &http.Transport{DisableKeepAlives: true} // without the proxy of the environment, which may be this very peer
	resp, err := transport.RoundTrip(r)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, fmt.Errorf("no peer answers at %s: %w", c, err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer from %s broke off: %w", c, err)
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("the answer from %s is longer than %d bytes", c, maxAnswer)
	case resp.Header.Get(saidBy) == "":
		return nil, fmt.Errorf("the server at %s is not a peer's admin listener (%s for %s)", c, resp.Status, r.URL.Path)
	case resp.StatusCode != http.StatusOK:
		return nil, errors.New(strings.TrimSpace(string(answer)))
	}
	return answer, nil
}
