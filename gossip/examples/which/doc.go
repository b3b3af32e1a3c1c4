// Command which answers "which sibling has it?" for caches that are not ours. One runs beside each cache, learns from
// it what it stores and evicts, and tells the others by a digest.
//
//	varnishadm param.set vsl_mask +ExpKill,+ExpBan
//	which --cache 10.0.0.1:80 --address 10.0.0.1 --join 10.0.0.2:7946 --secret-file team.secret --varnish ""
//	which --cache 10.0.0.1:80 --address 10.0.0.1 --join 10.0.0.2:7946 --secret-file team.secret --nginx /var/cache/nginx
//
//	curl -i 'http://127.0.0.1:8087/which?url=site.example/a'     # 200 and X-Sibling: 10.0.0.2:80, or 404
//
// The url is the key of the cache: for Varnish the Host field and the path, as its default hash has them, for nginx the
// value of proxy_cache_key. Any other cache says itself what it holds: PUT and DELETE of /holds?url=...
//
// An answer is a hint: ask the sibling in a way that it does not pass on, and go on if it has nothing.
//
// Varnish reports evictions in its log (varnish.go). nginx reports none, but its files are named by the MD5 of their
// keys, so the directory says what there is (nginx.go). What is stale is still held.
package main
