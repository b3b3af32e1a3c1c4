package config

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// fieldsOf returns the names of request fields that the conditions of a rule are about.
func fieldsOf(r *rules.Rule) (names []string) {
	for _, name := range r.Headers {
		names = append(names, http.CanonicalHeaderKey(name))
	}
	if r.When != nil {
		for _, used := range r.When.Uses {
			if name, ok := strings.CutPrefix(used, "header."); ok {
				names = append(names, name)
			}
		}
	}
	return names
}

// checkNever refuses conditions that no request can meet: an empty list, and a field that requests do not have here.
func (c *checker) checkNever(item section, r *rules.Rule) {
	for key, e := range item.entries {
		if slices.Contains(ruleMatchers, key) && e.list && len(e.values) == 0 {
			c.failKey(item, key, "", errors.New("is empty: the rule would match nothing"))
		}
	}
	for _, name := range fieldsOf(r) {
		if why := c.dropped(name); why != "" {
			key := "when"
			if r.Headers != nil {
				key = "header"
			}
			c.failKey(item, key, name, errors.New(why))
		}
	}
}

// dropped says why no request has a field where rules look at it; "" = requests may have it.
func (c *checker) dropped(name string) string {
	as := canonical.NewFields(c.PassFields).Reading(name, http.MethodPost, len(c.TrustedProxies) > 0)
	switch {
	case rfc9111.HopByHop(name):
		return "is a field of the connection, which requests do not have here"
	case as != "" && !strings.Contains(name, "*"):
		return "is dropped from requests, since some origins take it for " + as + ": use --pass-field if yours needs it"
	}
	return ""
}

// checkReached warns of settings of the i-th rule that an earlier rule decides for all its requests.
func (c *checker) checkReached(items []section, i int) {
	for _, key := range items[i].keys {
		if slices.Contains(ruleMatchers, key) {
			continue
		}
		for _, earlier := range items[:i] {
			e, has := earlier.entries[key]
			whole := "deny"
			if d, denies := earlier.entries[whole]; !has && denies && slices.Equal(d.values, []string{"true"}) {
				e, has = d, true // nothing else matters
			} else {
				whole = key
			}
			if has && covers(earlier, items[i]) && (whole != key || sameFields(key, e.values, items[i].entries[key].values)) {
				c.Warnings = append(c.Warnings,
					fmt.Sprintf("%s:%d: %s is never reached: line %d has %s for all requests of this rule",
						c.File, items[i].entries[key].line, key, e.line, whole))
				break
			}
		}
	}
}

// sameFields reports whether all fields of a later rule are named in an earlier one; other settings are one.
func sameFields(key string, earlier, later []string) bool {
	if key != "request-header" && key != "response-header" {
		return true
	}
	name := func(s string) string {
		s, _, _ = strings.Cut(strings.TrimLeft(s, "+-"), " ")
		return http.CanonicalHeaderKey(strings.TrimSuffix(s, ":"))
	}
	return !slices.ContainsFunc(later, func(l string) bool {
		return !slices.ContainsFunc(earlier, func(e string) bool { return name(e) == name(l) })
	})
}

// covers reports whether each request that meets the conditions of one rule certainly meets those of another.
// Expressions are compared as texts.
func covers(wide, narrow section) bool {
	for _, key := range ruleMatchers {
		w, has := wide.entries[key]
		n, also := narrow.entries[key]
		if has && (!also || slices.ContainsFunc(n.values, func(one string) bool {
			return !slices.ContainsFunc(w.values, func(all string) bool { return within(key, all, one) })
		})) {
			return false
		}
	}
	return true
}

func within(key, all, one string) bool {
	switch key {
	case "when", "scheme":
		return all == one
	case "client":
		a, err1 := readNetwork(all, reflect.StructTag(""))
		b, err2 := readNetwork(one, reflect.StructTag(""))
		return err1 == nil && err2 == nil && a.(netip.Prefix).Contains(b.(netip.Prefix).Addr()) && a.(netip.Prefix).Bits() <= b.(netip.Prefix).Bits()
	case "status":
		a, err1 := readStatus(all, nil)
		b, err2 := readStatus(one, nil)
		return err1 == nil && err2 == nil && a.(rules.Range).From <= b.(rules.Range).From && b.(rules.Range).To <= a.(rules.Range).To
	case "path":
		return invalidation.Glob(all, one)
	}
	return invalidation.Glob(strings.ToLower(all), strings.ToLower(one))
}
