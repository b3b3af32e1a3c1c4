package engine

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
)

// tagFields are the response fields with tags for purging: those of Fastly, of
// Cloudflare and Akamai, and of Varnish's module xkey. They are passed to clients, since a cache
// in front of this one may need them, too.
var tagFields = []string{"Surrogate-Key", "Cache-Tag", "Xkey"}

// maxTags is the number of tags that a response may have. A response with more counts as
// tagged with every tag: it has anyTag in their place, which can't be a tag since it has a space.
const (
	maxTags = 1024
	anyTag  = " any"
)

// SplitTags returns the tags in the value of such a field, which spaces and commas separate.
func SplitTags(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
}

// Tags returns the tags of a response or of a PURGE, each once.
func Tags(h http.Header) (tags []string) {
	for _, field := range tagFields {
		for _, line := range h[field] {
			tags = append(tags, SplitTags(line)...)
		}
	}
	return distinct(tags)
}

// tagsOfEntry returns the tags in an encoded entry, without decoding the rest of it.
func tagsOfEntry(data []byte) (tags []string) {
	for line := range bytes.Lines(data) {
		for _, field := range tagFields {
			if value, ok := bytes.CutPrefix(line, []byte(field)); ok && len(value) > 0 && value[0] == ':' {
				tags = append(tags, SplitTags(strings.TrimSpace(string(value[1:])))...)
			}
		}
	}
	return distinct(tags)
}

func distinct(tags []string) []string {
	slices.Sort(tags)
	tags = slices.Compact(tags)
	if len(tags) > maxTags {
		return []string{anyTag}
	}
	return tags
}
