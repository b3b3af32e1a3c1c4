package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/coding"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// ruleKeys are the keys of a rule; those that take a list are mapped to true.
var ruleKeys = map[string]bool{"site": true, "path": true, "cookie": true, "header": true, "status": true, "type": true,
	"bypass": false, "ttl": false, "min-ttl": false, "max-ttl": false, "ignore-no-cache": false,
	"query-keep": true, "query-drop": true, "query-sort": false, "encodings": true, "compress": true, "cookies-keep": true, "set-cookie": false}

// ruleMatchers are those of them that say what a rule is for, in the order in which they
// are shown; the others say what it does.
var ruleMatchers = []string{"site", "path", "cookie", "header", "status", "type"}

// ofResponses are the keys that speak of a response: the request is already under way.
var ofResponses = []string{"ttl", "min-ttl", "max-ttl", "set-cookie"}

// rules reads the rules and, behind them, what the settings of all of the peer say.
func (c *checker) rules(items []section, defaultTTL string, compress []string) (set rules.Set) {
	for i, item := range items {
		set = append(set, c.rule(strconv.Itoa(i+1), item))
	}
	if defaultTTL != "" {
		ttl := c.duration("default-ttl", defaultTTL)
		if ttl != ttl.Truncate(time.Second) {
			c.fail("default-ttl", defaultTTL, errors.New("is not in whole seconds"))
		}
		set = append(set, rules.Rule{Name: "default-ttl", TTL: &ttl, Anonymous: true})
	}
	if len(compress) > 0 {
		for _, name := range compress {
			c.fail("compress", name, knownCoding(name, coding.Codings()))
		}
		set = append(set, rules.Rule{Name: "compress", Compress: compress})
	}
	return set
}

func (c *checker) rule(name string, item section) rules.Rule {
	c.matcherOnly(item)
	is := &sectionReader{c, item}
	return rules.Rule{
		Name: name, Where: fmt.Sprintf("%s:%d", c.file, item.line),
		Sites: is.lower("site"), Paths: is.paths("path"), Cookies: is.list("cookie"), Headers: is.list("header"),
		Statuses: is.statuses("status"), Types: is.lower("type"),
		Bypass: is.boolean("bypass"), IgnoreNoCache: is.boolean("ignore-no-cache"),
		QueryKeep: is.list("query-keep"), QueryDrop: is.list("query-drop"), QuerySort: is.boolean("query-sort"),
		Encodings: is.codings("encodings", "br", "zstd", "gzip", "deflate", "compress"), Compress: is.codings("compress", coding.Codings()...), CookiesKeep: is.list("cookies-keep"), SetCookie: is.oneOf("set-cookie", rules.Refuse, rules.Store, rules.Drop),
		TTL: is.seconds("ttl"), MinTTL: is.seconds("min-ttl"), MaxTTL: is.seconds("max-ttl"),
	}
}

// rulesOfSites refuses a rule for a site that there is not.
func (c *checker) rulesOfSites(items []section, sites []proxy.Site) {
	for _, item := range items {
		is := &sectionReader{c, item}
		for _, pattern := range item.entries["site"].values {
			if !slices.ContainsFunc(sites, func(s proxy.Site) bool { return meant(s, strings.ToLower(pattern)) }) {
				is.fail("site", item.entries["site"], pattern, errors.New("is no host of a site: one that has a name goes by that and not by its hosts"))
			}
		}
	}
}

// meant reports whether the pattern of a rule can be for URLs of the site.
func meant(s proxy.Site, pattern string) bool {
	if s.Name != "" {
		return rules.Glob(pattern, s.Name)
	}
	return len(s.Hosts) == 0 || slices.ContainsFunc(s.Hosts, func(host string) bool {
		return rules.Glob(pattern, host) || rules.Glob(host, pattern)
	})
}

// matcherOnly refuses a rule that does nothing, and one that would decide about a request
// by its response.
func (c *checker) matcherOnly(item section) {
	is := &sectionReader{c, item}
	does := 0
	late := item.entries["status"].line > 0 || item.entries["type"].line > 0
	for key, e := range item.entries {
		if slices.Contains(ruleMatchers, key) {
			continue
		}
		does++
		if late && !slices.Contains(ofResponses, key) {
			is.fail(key, e, "", errors.New("is decided before there is an answer: it cannot depend on its status or type"))
		}
	}
	if does == 0 {
		c.errs = append(c.errs, fmt.Errorf("%s:%d: the rule says what it is for and not what it does, such as ttl: 1h", c.file, item.line))
	}
	if low, high := is.quietly("min-ttl"), is.quietly("max-ttl"); low > high && item.entries["max-ttl"].line > 0 {
		is.fail("min-ttl", item.entries["min-ttl"], item.entries["min-ttl"].values[0], errors.New("is more than max-ttl"))
	}
	if item.entries["query-keep"].line > 0 && item.entries["query-drop"].line > 0 {
		is.fail("query-drop", item.entries["query-drop"], "", errors.New("goes without query-keep: what is not kept is dropped"))
	}
}

// A sectionReader reads the values of a section and collects mistakes.
type sectionReader struct {
	c    *checker
	item section
}

func (s *sectionReader) fail(key string, e entry, value string, err error) {
	if err != nil {
		s.c.errs = append(s.c.errs, &Mistake{fmt.Sprintf("%s:%d: %s", s.c.file, e.line, key), value, err.Error()})
	}
}

// list returns a key's values; nil = it is not there.
func (s *sectionReader) list(key string) []string {
	e, ok := s.item.entries[key]
	if !ok {
		return nil
	}
	for _, v := range e.values {
		if v == "" || strings.ContainsAny(v, " \t,") {
			s.fail(key, e, v, errors.New("is no name or pattern: several make a list, [a, b]"))
		}
	}
	return append([]string{}, e.values...)
}

func (s *sectionReader) lower(key string) []string {
	list := s.list(key)
	for i := range list {
		list[i] = strings.ToLower(list[i])
	}
	return list
}

// codings are content codings of those that are known.
func (s *sectionReader) codings(key string, known ...string) []string {
	list := s.lower(key)
	for _, name := range list {
		s.fail(key, s.item.entries[key], name, knownCoding(name, known))
	}
	return list
}

func knownCoding(name string, known []string) error {
	if !slices.Contains(known, name) {
		return fmt.Errorf("is none of %s%s", strings.Join(known, ", "), didYouMean(name, known))
	}
	return nil
}

func (s *sectionReader) paths(key string) []string {
	list := s.list(key)
	for _, p := range list {
		if p != "" && p[0] != '/' && p[0] != '*' {
			s.fail(key, s.item.entries[key], p, errors.New("is no path: want one that begins with / or *, such as /static/*"))
		}
	}
	return list
}

func (s *sectionReader) text(key string) (string, bool) {
	e, ok := s.item.entries[key]
	if !ok || len(e.values) == 0 {
		return "", false
	}
	return e.values[0], true
}

func (s *sectionReader) boolean(key string) *bool {
	v, ok := s.text(key)
	if !ok {
		return nil
	}
	b := v == "true"
	if !b && v != "false" {
		s.fail(key, s.item.entries[key], v, errors.New("is neither true nor false"))
	}
	return &b
}

func (s *sectionReader) seconds(key string) *time.Duration {
	v, ok := s.text(key)
	if !ok {
		return nil
	}
	d, err := parseDuration(v)
	if err == nil && d != d.Truncate(time.Second) {
		err = errors.New("is not in whole seconds")
	}
	s.fail(key, s.item.entries[key], v, err)
	return &d
}

// quietly is seconds without complaints; 0 if there are none.
func (s *sectionReader) quietly(key string) time.Duration {
	v, _ := s.text(key)
	d, _ := parseDuration(v)
	return d
}

func (s *sectionReader) oneOf(key string, values ...string) string {
	v, ok := s.text(key)
	if ok && !slices.Contains(values, v) {
		s.fail(key, s.item.entries[key], v, fmt.Errorf("is none of %s%s", strings.Join(values, ", "), didYouMean(v, values)))
	}
	return v
}

// statuses reads codes such as 404, 4xx and 500-504.
func (s *sectionReader) statuses(key string) (out []rules.Range) {
	for _, v := range s.list(key) {
		from, to, span := strings.Cut(v, "-")
		switch {
		case len(v) == 3 && strings.HasSuffix(v, "xx"):
			from, to = v[:1]+"00", v[:1]+"99"
		case !span:
			to = from
		}
		low, err1 := strconv.Atoi(from)
		high, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || low < 200 || high > 599 || low > high {
			s.fail(key, s.item.entries[key], v, errors.New("is no status from 200 to 599, such as 404, 5xx or 500-504"))
		}
		out = append(out, rules.Range{From: low, To: high})
	}
	return out
}

// text is what a list of sections came to, an item a line; "" = there is none.
func (c *Config) text(name string) string {
	return strings.Join(c.lists[name], "\n")
}

// lines write the items of a list down, the keys in order first and the others by name.
func lines(items []section, order []string) (out []string) {
	for _, item := range items {
		var parts []string
		add := func(key string) {
			if e, ok := item.entries[key]; ok {
				value := strings.Join(e.values, ", ")
				if e.list {
					value = "[" + value + "]"
				}
				parts = append(parts, key+": "+value)
			}
		}
		var others []string
		for key := range item.entries {
			if !slices.Contains(order, key) {
				others = append(others, key)
			}
		}
		slices.Sort(others)
		for _, key := range slices.Concat(order, others) {
			add(key)
		}
		out = append(out, strings.Join(parts, ", "))
	}
	return out
}
