package config

import (
	"cmp"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/file"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// ownFields are fields that no rule may change, with what to use instead; "" = nothing. They say where a
// message ends, or a setting of their own decides about them.
var ownFields = map[string]map[string]string{
	"request-field": {
		"Host": "use origin-host of a site", "Cookie": "use cookies-keep", "Accept-Encoding": "use encodings",
		"Cache-Control": "use ignore-no-cache", "Pragma": "use ignore-no-cache", "Via": "", "Forwarded": "",
		"Range": "", "If-Range": "",
		"If-Match": "", "If-None-Match": "", "If-Modified-Since": "", "If-Unmodified-Since": "", "Expect": "",
		"Max-Forwards": "",
	},
	"response-field": {"Content-Encoding": "", "Content-Range": "", "Age": "", "Date": ""},
}

// ofConnections are those of both directions.
var ofConnections = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Upgrade",
	"Transfer-Encoding", "Content-Length"}

var errOwn = errors.New("is a field that the peer itself writes and reads")

// ownField returns an error for one of ownFields.
func ownField(kind, name string) error {
	instead, own := ownFields[kind][name]
	switch {
	case instead != "":
		return errors.New("is a field that has its own setting: " + instead)
	case own:
		return errOwn
	}
	return nil
}

// readFieldChange reads a change of a header field: NAME VALUE sets it, +NAME VALUE adds to it, -NAME
// removes it.
func readFieldChange(s string, t tag) (any, error) {
	var f rules.Field
	name, value, _ := strings.Cut(strings.TrimSpace(s), " ")
	if name != "" && (name[0] == '+' || name[0] == '-') {
		f.Op, name = name[0], name[1:]
	}
	name = strings.TrimSuffix(name, ":")
	f.Name, f.Value = http.CanonicalHeaderKey(name), strings.TrimSpace(value)
	switch kind := t.Get("type"); {
	case !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(f.Value) ||
		(f.Value == "") != (f.Op == '-'):
		return nil, errors.New("is no change of a header field: want NAME VALUE to set it, +NAME VALUE to add to it, " +
			"or -NAME to remove it")
	case slices.Contains(ofConnections, f.Name), strings.HasPrefix(f.Name, "Summarycache-"),
		kind == "request-field" && strings.HasPrefix(f.Name, "X-Forwarded-"):
		return nil, errOwn
	}
	err := cmp.Or(ownField(t.Get("type"), f.Name), f.Refer())
	for _, w := range f.References {
		if err == nil && t.Get("type") == "request-field" && rules.OfAnswers(w.Uses) {
			err = errors.New("has a value of the answer, which there is not yet: {" + w.Text + "}")
		}
	}
	return f, err
}

// readRedirect reads the target of a redirect, after its status if it has one.
func readRedirect(s string, _ tag) (any, error) {
	var t rules.Target
	if s == "none" {
		return t, nil
	}
	if code, rest, ok := strings.Cut(s, " "); ok {
		t.Status, _ = strconv.Atoi(code)
		if s = strings.TrimSpace(rest); t.Status != 301 && t.Status != 302 && t.Status != 303 && t.Status != 307 && t.Status != 308 {
			return nil, errors.New("has a status that is none of 301, 302, 303, 307 and 308")
		}
	}
	t.Text = s
	u, err := url.Parse(strings.NewReplacer("{host}", "host", "{uri}", "/", "*", " ").Replace(s)) // no host has a space
	switch {
	case err != nil || strings.ContainsAny(s, " \\\t\"<>") || strings.Count(s, "*") > 1:
		return nil, errors.New("is not a URL or path with at most one *, which must be in its path")
	case u.Scheme == "" && u.Host == "" && strings.HasPrefix(s, "/"), (u.Scheme == "http" || u.Scheme == "https") &&
		u.Host != "":
		return t, nil
	}
	return nil, errors.New("is neither an http or https URL, such as https://{host}{uri}, nor a path that begins " +
		"with /; none makes an exception")
}

// readRewrite reads the path that origins get.
func readRewrite(s string, _ tag) (any, error) {
	switch {
	case s == "none":
		return rules.Target{}, nil
	case strings.Count(s, "*") > 1 || !strings.HasPrefix(s, "/") || !canonical.Plain(strings.Replace(s, "*", "x", 1)):
		return nil, errors.New("is not a path with at most one *, in normal form and without a query; none makes an " +
			"exception")
	}
	return rules.Target{Text: s}, nil
}

// readRate reads a rate such as 10r/s.
func readRate(s string, _ tag) (any, error) {
	if s == "none" {
		return rules.Rate{}, nil
	}
	count, unit, _ := strings.Cut(s, "r/")
	n, err := strconv.ParseUint(count, 10, 31)
	per := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	if err != nil || n == 0 || n > 1_000_000 || per == 0 {
		return nil, errors.New("is not a rate up to 1000000r/s, such as 10r/s, 100r/m or 1000r/h; none makes an " +
			"exception")
	}
	return rules.Rate{Requests: int(n), Per: per}, nil
}

// readKey reads a part of the key: header.NAME or cookie.NAME.
func readKey(s string, _ tag) (any, error) {
	in, name, _ := strings.Cut(s, ".")
	switch {
	case strings.Contains(name, "*"):
		return nil, errors.New("names one field or cookie: * stands for nothing here")
	case in == "cookie" && httpguts.ValidHeaderFieldName(name):
		return s, nil
	case in != "header" || !httpguts.ValidHeaderFieldName(name):
		return nil, errors.New("is no part of a key: want header.NAME or cookie.NAME, such as header.accept")
	}
	if name = http.CanonicalHeaderKey(name); name == "Cookie" {
		return nil, errors.New("has all cookies: use cookie.NAME")
	}
	return "header." + name, ownField("request-field", name)
}

const maxPage = 1 << 20 // bytes of an error page

// readPage reads the file of an error page.
func readPage(s string, _ tag) (any, error) {
	body, err := file.Read(s, maxPage)
	if err != nil {
		return nil, errors.New("cannot be read: " + reason(err))
	}
	return rules.Page{File: s, Type: cmp.Or(mime.TypeByExtension(filepath.Ext(s)), http.DetectContentType(body)), Body: body}, nil
}
