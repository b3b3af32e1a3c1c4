package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/mutation"
)

// An app is an origin like those written with a web framework: it reads request fields as variables
// in which - and _ are the same, as in CGI, WSGI and PHP, decodes and normalises the path, and
// answers errors to requests that it dislikes. testdata/app.py is the same under wsgiref.
type app struct {
	stated bool   // each answer, errors included, states a lifetime
	under  string // a prefix of all paths
	loose  bool   // it decodes paths as some servers do that are more generous than CGI's
	behind bool   // it is behind trusted proxies, and shows nothing that depends on the client's address
}

// appFieldsMost is how many bytes of fields the app accepts, as gunicorn does.
const appFieldsMost = 8190

func (a app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.stated {
		w.Header().Set("Cache-Control", "public, max-age=3600")
	}
	vars, size := map[string]string{"HOST": r.Host}, 0
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		of := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		value := strings.Join(r.Header[name], ",")
		size += len(name) + len(value) + 4
		if vars[of] != "" {
			value = vars[of] + "," + value
		}
		vars[of] = value
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	uri := r.RequestURI
	if uri == "" {
		uri = r.URL.RequestURI()
	}
	if at := strings.Index(uri, "://"); at >= 0 { // absolute-form
		if slash := strings.IndexByte(uri[at+3:], '/'); slash >= 0 {
			uri = uri[at+3+slash:]
		}
	}
	raw, query, _ := strings.Cut(uri, "?")
	where := a.resolve(strings.TrimPrefix(raw, a.under))
	answer := func(status int, text string) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			io.WriteString(w, text)
		}
	}
	switch {
	case size > appFieldsMost:
		answer(400, "too large")
	case strings.ContainsFunc(strings.Join(slices.Collect(maps.Values(vars)), ""), func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		answer(400, "control character")
	case vars["EXPECT"] != "" && !strings.EqualFold(vars["EXPECT"], "100-continue"):
		answer(417, "cannot")
	case vars["IF_MATCH"] != "" && vars["IF_MATCH"] != "*":
		answer(412, "another")
	case vars["CONTENT_ENCODING"] != "":
		answer(415, "coded")
	case vars["MAX_FORWARDS"] == "x":
		answer(400, "no number")
	case strings.HasPrefix(where, "/account"):
		w.Header().Del("Cache-Control")
		if a.stated {
			w.Header().Set("Cache-Control", "private")
		}
		who := "a stranger"
		for pair := range strings.SplitSeq(vars["COOKIE"], ";") {
			if name, value, _ := strings.Cut(strings.TrimSpace(pair), "="); name == "session" {
				who = value
			}
		}
		answer(200, "hello "+who)
	case strings.HasPrefix(where, "/ranged/") && vars["RANGE"] != "":
		status := 0
		fmt.Sscanf(where, "/ranged/%d", &status)
		if status == 302 {
			w.Header().Set("Location", "/ranged")
		}
		answer(min(max(status, 302), 599), "no ranges")
	case where == "/missing":
		answer(404, "not here")
	case where == "/dir" && !strings.HasSuffix(raw, "/"):
		w.Header().Set("Location", scheme(vars)+"://"+host(vars)+"/dir/?"+query)
		answer(301, "")
	case where == "/language":
		w.Header().Set("Vary", "Accept-Language")
		answer(200, "in "+vars["ACCEPT_LANGUAGE"])
	case where == "/badvary":
		w.Header().Set("Vary", "a b, c")
		answer(200, "for "+vars["A"]+", "+vars["C"])
	case where == "/coded":
		w.Header().Set("Vary", "Accept-Encoding")
		if strings.Contains(vars["ACCEPT_ENCODING"], "gzip") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			io.WriteString(z, "text")
			z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			answer(200, b.String())
			return
		}
		answer(200, "text")
	default: // everything that the app could link to, or act by
		var b strings.Builder
		fmt.Fprintf(&b, "%s %s %q\n<script src=\"%s://%s/app.js\">\n", asGet(r.Method), uri, body, scheme(vars), host(vars))
		for _, c := range mutation.Claims {
			value := vars[c[0]]
			switch {
			case a.behind && c[0] == "X_FORWARDED_FOR":
				continue
			case a.behind && c[0] == "FORWARDED":
				value = regexp.MustCompile(`(?i)for="?[^;,"]*"?[;,]?\s*`).ReplaceAllString(value, "")
			}
			switch {
			case value != "":
			case c[1] == "HOST":
				value = r.Host
			default:
				value = c[1]
			}
			if value != "" {
				fmt.Fprintf(&b, "%s=%s\n", c[0], value)
			}
		}
		answer(200, b.String())
	}
}

// asGet is a method as applications see it: HEAD is answered like GET.
func asGet(method string) string {
	if method == http.MethodHead {
		return http.MethodGet
	}
	return method
}

func host(vars map[string]string) string {
	if h := vars["X_FORWARDED_HOST"]; h != "" {
		return h
	}
	return vars["HOST"]
}

func scheme(vars map[string]string) string {
	if s := vars["X_FORWARDED_PROTO"]; s != "" {
		return s
	}
	return "http"
}

// resolve returns the path that the app takes a raw one for: decoded once, and then normalised.
func (a app) resolve(raw string) string {
	if a.loose { // Java's path parameters, backslashes, decoding twice
		raw = strings.ReplaceAll(unquote(raw), "\\", "/")
		segments := strings.Split(raw, "/")
		for i, s := range segments {
			segments[i], _, _ = strings.Cut(s, ";")
		}
		raw = strings.ToLower(strings.Join(segments, "/"))
	}
	return path.Clean("/" + unquote(raw))
}

// unquote decodes what is decodable, as Python's does.
func unquote(s string) string {
	if out, err := url.PathUnescape(s); err == nil {
		return out
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if i+3 <= len(s) && s[i] == '%' {
			if c, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// asCGI makes the test binary run as a CGI program: the app.
const asCGI = "PEER_TEST_BINARY_IS_CGI"

// runCGI is the process of one request.
func runCGI() {
	stated, under, _ := strings.Cut(os.Getenv(asCGI), " ")
	if err := cgi.Serve(app{stated: stated == "stated", under: under}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
