package config

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
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
