package cache

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
)

// tagFields are the response fields that tag a response for purging: Fastly's, that of
// Cloudflare and Akamai, and that of Varnish's module xkey. Clients get them, as a cache
// in front of this one needs them, too.
var tagFields = []string{"Surrogate-Key", "Cache-Tag", "Xkey"}

// maxTags is how many tags of a response are told apart. One that has more counts as
// tagged by every tag: it has anyTag in their place, which is none, having a space.
const (
	maxTags = 1024
	anyTag  = " any"
)

// SplitTags returns the tags in the value of such a field: what spaces and commas divide.
func SplitTags(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
}

// Tags returns the tags of a response, each once, or of a PURGE.
func Tags(h http.Header) (tags []string) {
	for _, field := range tagFields {
		for _, line := range h[field] {
			tags = append(tags, SplitTags(line)...)
		}
	}
	return distinct(tags)
}

// tagsOfEntry returns those of what entry.encode wrote, without reading the rest of it.
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

// hasTag reports whether a response is to be purged with a tag.
func hasTag(h http.Header, tag string) bool {
	own := Tags(h)
	return slices.Contains(own, tag) || slices.Contains(own, anyTag)
}
