package control

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/peering"
)

const (
	// Path is the path of control requests. A request to it without the control field is an
	// ordinary request.
	Path = "/.well-known/summarycache-control"
	// Window is how far the clocks of two peers may differ, and how long a request is valid.
	Window = time.Minute

	field     = "Summarycache-Control"
	maxBody   = 64 << 10 // bytes of a request
	maxBodies = 64       // requests whose bodies are read at the same time
	maxAnswer = 16 << 20 // bytes of an answer
	maxNonces = 64 << 10 // valid requests that are remembered
)

// ErrRefused means that the other peer did not accept the signature.
var ErrRefused = errors.New("refused: secrets or clocks differ")

// A Do carries out an operation for another peer and returns the answer, which is sent as JSON.
type Do func(ctx context.Context, from, operation string, body []byte) (any, error)

// Control is one peer's end. It is safe for concurrent use.
type Control struct {
	name    string
	secrets func() [][]byte
	from    func(r *http.Request, member string) error

	bodies chan struct{} // limits the bodies that are read at the same time

	mu   sync.Mutex
	seen map[string]time.Time // the nonces of accepted requests, and when these expire
}

// New returns the Control of the peer of that name. secrets returns the cluster's secrets; the first
// one signs. If there is none, from returns an error for a request that is not from the member that it
// names.
func New(name string, secrets func() [][]byte, from func(r *http.Request, member string) error) *Control {
	return &Control{name: name, secrets: secrets, from: from, seen: make(map[string]time.Time), bodies: make(chan struct{}, maxBodies)}
}

// keys returns the keys derived from the secrets: the first signs, all are accepted. Without a secret
// there is one key, which anybody can derive.
func (c *Control) keys() (keys [][]byte) {
	for _, s := range c.secrets() {
		keys = append(keys, deriveKey(s))
	}
	if len(keys) == 0 {
		keys = append(keys, deriveKey(nil))
	}
	return keys
}

func deriveKey(secret []byte) []byte {
	key, err := hkdf.Key(sha256.New, secret, []byte("summarycache"), "peer control 1", 32)
	if err != nil { // cannot happen: the length is valid
		panic(err)
	}
	return key
}

// A message is the signed part of a request.
type message struct {
	from, to, operation, nonce string
	at                         time.Time
	body                       string // hash of the body, see hashOf
}

func hashOf(body []byte) string { return fmt.Sprintf("%x", sha256.Sum256(body)) }

// mac returns the MAC of a formatted text.
func mac(key []byte, format string, args ...any) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, format, args...)
	return hex.EncodeToString(h.Sum(nil))
}

func (m *message) sign(key []byte) string {
	return mac(key, "request 1\n%s\n%s\n%s\n%s\n%d\n%s", m.from, m.to, m.operation, m.nonce, m.at.Unix(), m.body)
}

func signAnswer(key []byte, nonce string, status int, body []byte) string {
	return mac(key, "answer 1\n%s\n%d\n%s", nonce, status, hashOf(body))
}

// header returns "2 FROM TO OPERATION NONCE SECONDS BODY MAC". BODY is the hash of the body, so that
// a receiver can verify the sender before it reads the body.
func (m *message) header(key []byte) string {
	return fmt.Sprintf("2 %s %s %s %s %d %s %s", m.from, m.to, m.operation, m.nonce, m.at.Unix(), m.body, m.sign(key))
}

// parse reads a header; ok is false if it is malformed.
func parse(s string) (m message, mac string, ok bool) {
	f := strings.Split(s, " ")
	if len(f) != 8 || f[0] != "2" || len(f[4]) != 32 {
		return m, "", false
	}
	seconds, err := strconv.ParseInt(f[5], 10, 64)
	if err != nil {
		return m, "", false
	}
	return message{from: f[1], to: f[2], operation: f[3], nonce: f[4], at: time.Unix(seconds, 0), body: f[6]}, f[7], true
}

// Handler answers control requests with the results of do, and passes all others to next.
func (c *Control) Handler(do Do, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != Path || r.Header.Get(field) == "" {
			next.ServeHTTP(w, r)
			return
		}
		c.answer(w, r, do)
	})
}

func (c *Control) answer(w http.ResponseWriter, r *http.Request, do Do) {
	m, key, ok := c.accept(r.Header.Get(field), time.Now())
	if !ok || len(c.secrets()) == 0 && c.from(r, m.from) != nil {
		w.Header().Set("Connection", "close") // do not read the body of a refused request
		http.Error(w, "not for this peer", http.StatusForbidden)
		return
	}
	body, ok := c.read(w, r, m)
	if !ok {
		return
	}
	status := http.StatusOK
	result, err := do(r.Context(), m.from, m.operation, body)
	if err != nil {
		status, result = http.StatusUnprocessableEntity, err.Error()
	}
	answer, err := json.Marshal(result)
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set(field, signAnswer(key, m.nonce, status, answer))
	w.WriteHeader(status)
	w.Write(answer)
}

// read returns the body of an accepted request. If it cannot, it answers with the reason.
func (c *Control) read(w http.ResponseWriter, r *http.Request, m message) (body []byte, ok bool) {
	select {
	case c.bodies <- struct{}{}:
		defer func() { <-c.bodies }()
	default:
		http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	switch {
	case err != nil:
		http.Error(w, "the request is too long or incomplete", http.StatusRequestEntityTooLarge)
	case !hmac.Equal([]byte(hashOf(body)), []byte(m.body)):
		http.Error(w, "the body is not the signed one", http.StatusForbidden)
	default:
		return body, true
	}
	return nil, false
}

// accept verifies a request except for its body, and returns the key that signed it.
func (c *Control) accept(header string, now time.Time) (m message, key []byte, ok bool) {
	m, mac, ok := parse(header)
	if !ok || m.to != c.name || m.at.Before(now.Add(-Window)) || m.at.After(now.Add(Window)) {
		return m, nil, false
	}
	for _, key := range c.keys() {
		if hmac.Equal([]byte(m.sign(key)), []byte(mac)) {
			return m, key, c.first(m.nonce, m.at.Add(Window), now)
		}
	}
	return m, nil, false
}

// first reports whether a nonce is new, and remembers it for as long as its request is valid. It
// refuses all requests while no more nonces can be remembered.
func (c *Control) first(nonce string, until, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) >= maxNonces {
		for n, t := range c.seen {
			if t.Before(now) {
				delete(c.seen, n)
			}
		}
	}
	if _, again := c.seen[nonce]; again || len(c.seen) >= maxNonces {
		return false
	}
	c.seen[nonce] = until
	return true
}

// Call has the peer of that name, at its service address, carry out an operation, and decodes its
// answer into out. If the operation fails there, the error has that peer's text.
func (c *Control) Call(ctx context.Context, rt http.RoundTripper, peer, addr, operation string, in, out any) error {
	keys := c.keys()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	nonce := make([]byte, 16)
	rand.Read(nonce)
	m := message{from: c.name, to: peer, operation: operation, nonce: hex.EncodeToString(nonce), at: time.Now(), body: hashOf(body)}
	r, err := http.NewRequestWithContext(peering.WithPeer(ctx, peer), http.MethodPost, "http://"+addr+Path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set(field, m.header(keys[0]))
	r.Header.Set("Content-Type", "application/json")
	resp, err := rt.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(answer) > maxAnswer:
		return fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case !hmac.Equal([]byte(signAnswer(keys[0], m.nonce, resp.StatusCode, answer)), []byte(resp.Header.Get(field))):
		return fmt.Errorf("%w (%s)", ErrRefused, resp.Status+offBy(resp.Header, time.Now()))
	case resp.StatusCode != http.StatusOK:
		var words string
		json.Unmarshal(answer, &words)
		return errors.New(words)
	}
	return json.Unmarshal(answer, out)
}

// offBy describes the clock difference to a peer that refused a request, if that may be the reason.
func offBy(h http.Header, now time.Time) string {
	date, err := http.ParseTime(h.Get("Date"))
	switch off := date.Sub(now).Round(time.Second); {
	case err != nil:
		return ""
	case off > Window:
		return fmt.Sprintf("; its clock is ahead of this one by %v", off)
	case off < -Window:
		return fmt.Sprintf("; its clock is behind this one by %v", -off)
	}
	return ""
}
