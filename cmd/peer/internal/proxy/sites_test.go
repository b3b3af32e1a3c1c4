package proxy

import "net/url"

func mustURLs(list ...string) (urls []*url.URL) {
	for _, s := range list {
		u, err := url.Parse(s)
		if err != nil {
			panic(err)
		}
		urls = append(urls, u)
	}
	return urls
}
