package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

const (
	maxAnswer = 128 << 20 // bytes of the longest answer that a client accepts
	patience  = 30 * time.Second
)

// A Client is the address of the admin listener of a peer, host:port, or the path of its Unix socket.
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

// Session returns a token for a browser. token is as for Purge.
func (c Client) Session(ctx context.Context, token string) (s Session, err error) {
	return s, c.post(ctx, "/session", token, SessionRequest{}, &s)
}

// Purge removes responses. token is one of the peer's [Access]; without one ("") the command goes by the peer's Unix
// socket, if that is on this machine.
func (c Client) Purge(ctx context.Context, o PurgeRequest, token string) (r PurgeReport, err error) {
	return r, c.post(ctx, "/purge", token, o, &r)
}

// Reload has the peer read its configuration again. token is as for Purge.
func (c Client) Reload(ctx context.Context, o ReloadRequest, token string) (r ReloadReport, err error) {
	return r, c.post(ctx, "/reload", token, o, &r)
}

// Replace has the program file continue in the peer's process, and returns the status of the new program once that is
// ready. token is as for Purge. ctx bounds how long all that may take. An error that says that nothing answers any more
// means that the new program has ended; any other one that the peer runs on as it was.
func (c Client) Replace(ctx context.Context, token string) (before, after Status, err error) {
	if before, err = c.Status(ctx); err != nil {
		return before, after, err
	}
	if err = c.post(ctx, "/replace", token, ReplaceRequest{}, new(ReplaceReport)); err != nil {
		return before, after, err
	}
	if c.socket() { // which the new program makes anew
		c = Client(before.Addresses.Admin)
	}
	for silent := time.Now(); ; {
		after, err = c.Status(ctx)
		switch {
		case err == nil && after.State == "serving" && !after.Started.Equal(before.Started):
			return before, after, nil
		case err == nil && after.Upgrade.Error != "":
			return before, after, errors.New(after.Upgrade.Error)
		case err == nil:
			silent = time.Now()
		case ctx.Err() == nil && time.Since(silent) > goneAfter: // its sockets outlast the change of programs
			return before, after, fmt.Errorf("the program was replaced, and the new one has ended: see its log: %w",
				err)
		}
		select {
		case <-time.After(time.Second / 5):
		case <-ctx.Done():
			return before, after, fmt.Errorf("the program was accepted, and is not ready in time: %w",
				context.Cause(ctx))
		}
	}
}

// goneAfter is how long nothing may answer until the peer's process is taken to have ended.
const goneAfter = 5 * time.Second

func (c Client) post(ctx context.Context, path, token string, command, report any) error {
	body, err := json.Marshal(command)
	if err == nil && token == "" && !c.socket() {
		c, err = c.bySocket(ctx)
	}
	if err != nil {
		return err
	}
	answer, err := c.call(ctx, http.MethodPost, path, token, body)
	return c.decode(answer, err, report)
}

func (c Client) socket() bool { return filepath.IsAbs(string(c)) }

// bySocket returns the Unix socket of the peer at an address, or c if it has none here: a peer on another machine may
// have one at the same path as another peer on this machine.
func (c Client) bySocket(ctx context.Context) (Client, error) {
	there, err := c.Status(ctx)
	path := Client(there.Addresses.Socket)
	if err != nil || !path.socket() {
		return c, err
	}
	here, err := path.Status(ctx)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return c, fmt.Errorf("%w: be the peer's user or root, or use --token-file", err)
	case err != nil || here.Name != there.Name || !here.Started.Equal(there.Started):
		return c, nil
	}
	return path, nil
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
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	// Without the proxy of the environment, which may be this very peer.
	transport, dialer := &http.Transport{DisableKeepAlives: true}, new(net.Dialer)
	host := string(c)
	if c.socket() {
		host = "localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", string(c))
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+host+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("no peer can be at %q", string(c))
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if name, _, err := net.SplitHostPort(host); err == nil && strings.Contains(name, ".") {
		r.Host = "localhost" // the check of the host protects browsers only, and would refuse most names
	}
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
		return nil, fmt.Errorf("the server at %s is not a peer's admin listener (%s for %s)", c,
			resp.Status, r.URL.Path)
	case resp.StatusCode != http.StatusOK:
		return nil, errors.New(strings.TrimSpace(string(answer)))
	}
	return answer, nil
}
