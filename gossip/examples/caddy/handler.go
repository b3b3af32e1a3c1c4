// Package caddy is a handler for Caddy that keeps the answers of those behind it and
// finds others at the Caddies beside it. It keeps what says that it is public, and for
// how long, and does not vary; all the rest of HTTP caching is the business of a cache.
package caddy

import (
	"bytes"
	"io"
	"net/http"
	"net/url"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/sibling"
)

func init() { caddy.RegisterModule(new(Handler)) }

// A Handler is the module http.handlers.summarycache; JSON sets its fields.
type Handler struct {
	Name    string   `json:"name"`    // unique in the cluster
	Gossip  string   `json:"gossip"`  // host:port, UDP and TCP
	Service string   `json:"service"` // host:port where this Caddy answers the others
	Join    []string `json:"join"`    // gossip addresses of others
	Secret  string   `json:"secret"`  // of the cluster, such as {env.SECRET} or {file./etc/secret}; "" = none
	Objects int      `json:"objects"` // kept at most; 0 = 10,000

	*cache // of this name, as long as any configuration has it
}

var caches = caddy.NewUsagePool()

// CaddyModule implements caddy.Module.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.summarycache", New: func() caddy.Module { return new(Handler) }}
}

// Provision implements caddy.Provisioner.
func (h *Handler) Provision(ctx caddy.Context) error {
	c, _, err := caches.LoadOrNew(h.Name, func() (caddy.Destructor, error) {
		return newCache(h.Objects, gossip.Config{Name: h.Name, Bind: h.Gossip, Service: h.Service, Join: h.Join,
			Secret: []byte(caddy.NewReplacer().ReplaceAll(h.Secret, "")), Logger: ctx.Slogger()})
	})
	if err == nil {
		h.cache = c.(*cache)
	}
	return err
}

// Cleanup implements caddy.CleanerUpper.
func (h *Handler) Cleanup() error {
	if h.cache == nil {
		return nil
	}
	_, err := caches.Delete(h.Name)
	return err
}

// ServeHTTP answers from the store, from a sibling, or by the next handler. Siblings
// are answered from the store or not at all, so that questions can't go in circles.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	question := sibling.IsQuestion(r)
	if r.Method != http.MethodGet || r.Header.Get("Authorization") != "" || r.Header.Get("Cache-Control") != "" && !question {
		return next.ServeHTTP(w, r)
	}
	u := &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	identity := "GET " + u.String()
	if o, ok := h.get(identity); ok {
		return h.write(w, o)
	}
	if question {
		sibling.AnswerMiss(w, h.Name)
		return nil
	}
	if o, ok := h.ask(r, u, identity); ok {
		h.put(identity, o)
		return h.write(w, o)
	}
	var body bytes.Buffer
	recorder := caddyhttp.NewResponseRecorder(w, &body, func(status int, header http.Header) bool {
		_, ok := newObject(header, nil)
		return ok && status == http.StatusOK
	})
	if err := next.ServeHTTP(recorder, r); err != nil || !recorder.Buffered() {
		return err
	}
	if o, ok := newObject(recorder.Header(), body.Bytes()); ok {
		h.put(identity, o)
	}
	return recorder.WriteResponse()
}

// ask asks the siblings whose digests match.
func (h *Handler) ask(r *http.Request, u *url.URL, identity string) (o object, ok bool) {
	answer, err := h.siblings.Ask(sibling.Question{
		URL: u, Header: http.Header{"Cache-Control": {"only-if-cached"}}, Identities: []string{identity},
	}).Next(r.Context(), nil)
	if err != nil || answer == nil {
		return o, false
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return o, false
	}
	return newObject(answer.Header, body)
}
