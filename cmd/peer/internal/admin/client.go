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
	maxAnswer = 128 << 20 // bytes of an answer that a client takes
	patience  = 30 * time.Second
)

// A Client is the address, host:port, of the admin listener of a peer.
type Client string

// Status asks for the peer's status.
func (c Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.json(ctx, http.MethodGet, "/status.json", "", nil, &s)
}

// Cluster asks for the status of all peers.
func (c Client) Cluster(ctx context.Context) (all Cluster, err error) {
	return all, c.json(ctx, http.MethodGet, "/cluster.json", "", nil, &all)
}

// Why asks how a request would be answered.
func (c Client) Why(ctx context.Context, in WhyRequest) (e Explanation, err error) {
	q := url.Values{"url": {in.URL}}
	if in.Method != "" {
		q.Set("method", in.Method)
	}
	for name, lines := range in.Header {
		for _, line := range lines {
			q.Add("header", name+": "+line)
		}
	}
	return e, c.json(ctx, http.MethodGet, "/why?"+q.Encode(), "", nil, &e)
}

// Purge removes responses. token is that of the peer's [Access].
func (c Client) Purge(ctx context.Context, o PurgeRequest, token string) (r PurgeReport, err error) {
	return r, c.json(ctx, http.MethodPost, "/purge", token, o, &r)
}

// Digest fetches the encoding of a peer's digest, see [Source].
func (c Client) Digest(ctx context.Context, peer string) ([]byte, error) {
	return c.call(ctx, http.MethodGet, "/digest?"+url.Values{"peer": {peer}}.Encode(), "", nil)
}

func (c Client) json(ctx context.Context, method, path, token string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	answer, err := c.call(ctx, method, path, token, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("the answer from %s cannot be read: %w", c, err)
	}
	return nil
}

// call returns the body of an answer.
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
		r.Host = "localhost" // a program means this address, by any name
	}
	transport := &http.Transport{DisableKeepAlives: true} // without a proxy of the environment: it may be this very peer
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
		return nil, fmt.Errorf("what answers at %s is not a peer's admin listener (%s for %s)", c, resp.Status, r.URL.Path)
	case resp.StatusCode != http.StatusOK:
		return nil, errors.New(strings.TrimSpace(string(answer)))
	}
	return answer, nil
}
