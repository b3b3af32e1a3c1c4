package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/coding"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/insider"
)

// A tag is the tag of a struct field, by kong or by package reflect.
type tag interface{ Get(key string) string }

// kinds are the parsers of field values, by the field's `type`. They serve flags, settings, and the
// keys of rules and sites. The bounds `min` and `max` are inclusive. An error completes the
// sentence that begins with the text.
var kinds = map[string]func(text string, t tag) (any, error){
	"size":           readSize,
	"time":           readTime,
	"seconds":        readSeconds,
	"count":          readCount,
	"number":         readNumber,
	"boolean":        readBoolean,
	"choice":         readChoice,
	"level":          readLevel,
	"status":         readStatus,
	"coding":         text(func(s string) error { return oneOf(s, coding.Codings()) }),
	"pattern":        text(checkPattern),
	"hosts":          text(without("/@", "a host, such as shop.example or *.example.com")),
	"cookie":         text(without("=;", "the name of a cookie, without its value")),
	"parameter":      text(without("=&%", "the name of a parameter, decoded and without its value")),
	"media":          text(checkMedia),
	"path":           text(checkPath),
	"header":         valid(isHeader, "is not a name or pattern"),
	"prefix":         valid(isPrefix, "is not a path: want one that begins with /, without * or a query"),
	"host":           valid(isHost, "is not a host: want a name such as shop.example or *.example.com"),
	"field":          valid(httpguts.ValidHeaderFieldName, "is not the name of a header field, such as X_Api_Version"),
	"origin":         readOrigin,
	"redirect":       readRedirect,
	"rewrite":        readRewrite,
	"rate":           readRate,
	"key":            readKey,
	"page":           readPage,
	"when":           func(s string, _ tag) (any, error) { return rules.ParseWhen(s) },
	"request-field":  readFieldChange,
	"response-field": readFieldChange,
	"network":        readNetwork,
	"listener": func(s string, t tag) (any, error) {
		return s, checkAddr(s, t.Get("example"), true)
	},
	"address": func(s string, t tag) (any, error) {
		return s, checkAddr(s, t.Get("example"), false)
	},
	"join": func(s string, t tag) (any, error) {
		if strings.HasPrefix(s, "srv:") {
			return s, insider.CheckJoin(s)
		}
		return s, checkAddr(s, t.Get("example"), false)
	},
}

// text returns a kind whose value is the text itself.
func text(check func(string) error) func(string, tag) (any, error) {
	return func(s string, _ tag) (any, error) { return s, check(s) }
}

// valid returns a kind whose value is a text for which is is true. Of any other it says why not.
func valid(is func(string) bool, why string) func(string, tag) (any, error) {
	return text(func(s string) error {
		if !is(s) {
			return errors.New(why)
		}
		return nil
	})
}

// set parses texts into a field; only a list has more than one. It returns the mistakes, without
// their place. A list gets the values that are valid.
func set(field reflect.Value, t tag, texts []string) (wrong []mistake) {
	read := kinds[t.Get("type")]
	if field.Kind() == reflect.Slice && field.IsNil() {
		field.Set(reflect.MakeSlice(field.Type(), 0, len(texts)))
	}
	for _, text := range texts {
		switch t.Get("lower") {
		case "yes":
			text = strings.ToLower(text)
		case "host": // a request never has the letters of another alphabet
			text = canonical.ASCII(strings.ToLower(text))
		}
		value, err := any(text), error(nil)
		if read != nil {
			value, err = read(text, t)
		}
		switch v := reflect.ValueOf(value); {
		case err != nil && field.Kind() == reflect.Slice && strings.Contains(text, ","): // flags are split before
			wrong = append(wrong, mistake{Value: text,
				Reason: "is not one item: in the file a list is written in brackets, as [a, b]"})
		case err != nil:
			m := mistake{Value: text, Reason: err.Error()}
			errors.As(err, &m.at)
			wrong = append(wrong, m)
		case field.Kind() == reflect.Slice:
			field.Set(reflect.Append(field, v.Convert(field.Type().Elem())))
		case field.Kind() == reflect.Pointer && v.Kind() != reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
			field.Elem().Set(v.Convert(field.Type().Elem()))
		default:
			field.Set(v.Convert(field.Type()))
		}
	}
	return wrong
}

func readSize(s string, t tag) (any, error) {
	n, err := ParseSize(s)
	least, _ := ParseSize(t.Get("min"))
	switch {
	case err != nil:
	case n == 0 && t.Get("default") == "0":
	case n < least:
		err = errors.New("is less than " + t.Get("min"))
	case n >= 1<<50:
		err = errors.New("is too large: want less than 1024TiB")
	}
	return n, err
}

// readTime reads a duration. Zero is allowed below the minimum if it is the default.
func readTime(s string, t tag) (any, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	}
	least, _ := time.ParseDuration(t.Get("min"))
	most, unbounded := time.ParseDuration(t.Get("max"))
	switch {
	case err != nil:
		err = errors.New("is not a time: want a number and a unit, such as 500ms, 10s, 5m or 7d")
	case d < 0:
		err = errors.New("is negative")
	case d == 0 && t.Get("default") == "0s":
	case unbounded == nil && (d < least || d > most):
		err = fmt.Errorf("is not between %s and %s", least, t.Get("max"))
	}
	return d, err
}

func readSeconds(s string, t tag) (any, error) {
	d, err := readTime(s, t)
	if err == nil && d.(time.Duration)%time.Second != 0 {
		err = errors.New("is not in whole seconds")
	}
	return d, err
}

func readCount(s string, t tag) (any, error) {
	least, _ := strconv.ParseUint(t.Get("min"), 10, 64)
	most, unbounded := strconv.ParseUint(t.Get("max"), 10, 64)
	if unbounded != nil {
		most = math.MaxUint64
	}
	unit := strings.TrimLeft(s, "0123456789.e")
	factor, known := map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit]
	f, err := strconv.ParseFloat(strings.TrimSuffix(s, unit), 64)
	f *= factor
	n := uint64(f)
	if err != nil || !known || f < 0 || f >= 1<<53 || f != float64(n) || n < least || n > most {
		err = fmt.Errorf("is not a whole number between %d and %d, such as 200000, 200k or 1M", least, most)
	}
	return n, err
}

func readNumber(s string, t tag) (any, error) {
	least, _ := strconv.ParseFloat(t.Get("min"), 64)
	most, _ := strconv.ParseFloat(t.Get("max"), 64)
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= least && f <= most) {
		err = fmt.Errorf("is not a number between %s and %s", cmp.Or(t.Get("min"), "0"), t.Get("max"))
	}
	return f, err
}

func readBoolean(s string, _ tag) (any, error) {
	if s != "true" && s != "false" {
		return nil, errors.New("is neither true nor false")
	}
	return s == "true", nil
}

func readChoice(s string, t tag) (any, error) { return s, oneOf(s, strings.Split(t.Get("oneof"), ",")) }

func oneOf(s string, known []string) error {
	if !slices.Contains(known, s) {
		return fmt.Errorf("is none of %s%s", strings.Join(known, ", "), didYouMean(s, known))
	}
	return nil
}

func readLevel(s string, t tag) (any, error) {
	_, err := readChoice(s, t)
	var level slog.Level
	if err == nil {
		err = level.UnmarshalText([]byte(s))
	}
	return level, err
}

// readStatus reads codes such as 404, 4xx and 500-504.
func readStatus(s string, _ tag) (any, error) {
	from, to, span := strings.Cut(s, "-")
	switch {
	case len(s) == 3 && strings.HasSuffix(s, "xx"):
		from, to = s[:1]+"00", s[:1]+"99"
	case !span:
		to = from
	}
	low, err1 := strconv.Atoi(from)
	high, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil || low < 200 || high > 599 || low > high {
		return nil, errors.New("is not a status from 200 to 599, such as 404, 5xx or 500-504")
	}
	return rules.Range{From: low, To: high}, nil
}

// readNetwork reads a network, or an address as a network of one. Bits after the prefix are
// cleared or, with `exact`, a mistake.
func readNetwork(s string, t tag) (any, error) {
	p, err := rules.Network(s)
	switch {
	case err != nil:
		err = errors.New("is not a network: want one such as 10.0.0.0/8 or 10.0.0.9")
	case p.Masked() != p && t.Get("exact") != "":
		err = fmt.Errorf("has bits set after its prefix: did you mean %s?", p.Masked())
	}
	return p.Masked(), err
}

// readOrigin reads the URL of an origin. With `exact` it must be an http URL without a path.
func readOrigin(s string, t tag) (any, error) {
	u, err := url.Parse(s)
	switch {
	case !strings.Contains(s, "://"):
		return nil, errors.New("is not an http, https or h2c URL, such as http://127.0.0.1:8080")
	case err != nil:
		return nil, errors.New("is not a URL: " + err.(*url.Error).Err.Error())
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c":
		return nil, errors.New("is not an http, https or h2c URL, such as http://127.0.0.1:8080")
	case u.Host == "" || u.Hostname() == "":
		return nil, errors.New("has no host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, errors.New("may have a path but no user, query or fragment")
	case t.Get("exact") != "" && (u.Scheme != "http" || strings.Trim(u.Path, "/") != ""):
		return nil, errors.New("is not an http URL without a path, such as http://127.0.0.1:8080")
	}
	return u, nil
}

// checkPattern checks a name that may contain *.
func checkPattern(s string) error {
	if s == "" || strings.ContainsAny(s, " \t,") {
		return errors.New("is not a name or pattern")
	}
	return nil
}

// without returns a check of patterns that would match nothing if they had one of these characters.
func without(chars, want string) func(string) error {
	return func(s string) error {
		if err := checkPattern(s); err != nil || !strings.ContainsAny(s, chars) {
			return err
		}
		return errors.New("matches nothing: want " + want)
	}
}

// checkMedia checks a pattern of media types.
func checkMedia(s string) error {
	if err := checkPattern(s); err != nil || strings.ContainsAny(s, "/*") {
		return err
	}
	return errors.New("matches nothing: want a media type, such as text/html or image/*")
}

// checkPath checks a pattern of paths.
func checkPath(s string) error {
	if err := checkPattern(s); err != nil {
		return err
	}
	if s[0] != '/' && s[0] != '*' {
		return errors.New("is not a path: want one that begins with / or *, such as /static/*")
	}
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		return fmt.Errorf("has a %c: paths are compared without the query. query-keep and query-drop say which "+
			"parameters count", s[i])
	}
	if plain, err := url.PathUnescape(s); err == nil && plain != s {
		plain = strings.ReplaceAll(plain, " ", "*")
		return fmt.Errorf("matches nothing, since paths are compared decoded: want %q", plain)
	}
	if path := strings.ReplaceAll(s, "*", "x"); canonical.Ambiguous(&url.URL{Path: path}) ||
		strings.Contains(path+"/", "/../") || strings.Contains(path+"/", "/./") {
		return errors.New("matches nothing: paths have no dot segments, and those that servers take for others are " +
			"ambiguous, which no pattern matches")
	}
	return nil
}

// isHeader reports whether s is a pattern of names of header fields.
func isHeader(s string) bool { return httpguts.ValidHeaderFieldName(strings.ReplaceAll(s, "*", "x")) }

// isPrefix reports whether s is a path that includes everything below it.
func isPrefix(s string) bool { return strings.HasPrefix(s, "/") && !strings.ContainsAny(s, "*?#") }

// isHost reports whether s is a host with an optional port, or the pattern *.DOMAIN.
func isHost(s string) bool { return canonical.ValidHost(strings.TrimPrefix(s, "*.")) }
