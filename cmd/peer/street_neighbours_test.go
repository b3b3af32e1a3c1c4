//go:build linux

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Varnish and nginx, which cache too, before two peers: who comes through either gets the bytes and the version that
// the origin has, ages add up, and the origin is asked once.
func TestStreetCachesInFront(t *testing.T) {
	onTheStreet(t, func(s *street) {
		version := 0
		o := s.origin("127.0.0.1:80", func(r *http.Request) string {
			return fmt.Sprintf("%s version %d for %s\n%s", r.URL.Path, version, r.Header.Get("X-Forwarded-For"), noise(7,
				3_000_000))
		})
		trust := []string{"--origin", "http://127.0.0.1", "--trusted-proxies", "127.0.0.1"}
		a := s.peer("", "a", "127.0.0.1", trust...)
		b := s.peer("", "b", "127.0.0.1", append(trust, "--join", a.gossip)...)
		eventually(s.T, time.Minute, "they know each other", func() bool {
			m, _ := a.member("b")
			k, _ := b.member("a")
			return m.State == "alive" && k.State == "alive" && m.Current && k.Current
		})
		host, port, _ := net.SplitHostPort(b.listen)
		vcl := fmt.Sprintf("vcl 4.1;\nbackend b { .host = %q; .port = %q; }\nsub vcl_deliver { set resp.http.X-Varnish-Hits = obj.hits; }\n", host, port)
		s.server("", "127.0.0.1:8001", "varnishd", "-F", "-n", filepath.Dir(s.file("varnish/x", "")), "-a", "127.0.0.1:8001",
			"-f", s.file("default.vcl", vcl), "-s", "default,64m")
		s.nginx("front", "127.0.0.1:8000", `proxy_cache_path /run/street/front/cache keys_zone=c:1m; proxy_http_version 1.1;
server { listen 127.0.0.1:8000; location / { proxy_pass http://`+a.listen+`; proxy_set_header Connection ""; proxy_cache c; proxy_cache_revalidate on;
	proxy_set_header X-Forwarded-For $remote_addr; add_header X-Nginx $upstream_cache_status; } }`)
		fronts := []string{"127.0.0.1:8000", "127.0.0.1:8001"}
		text := func(path string) string { // the first client's address stays, and is the same for both
			return fmt.Sprintf("%s version %d for 127.0.0.1, 127.0.0.1\n%s", path, version, noise(7, 3_000_000))
		}
		for _, path := range []string{"/one", "/two"} {
			for i := range 6 {
				front := fronts[i%2]
				h, got, err := s.from(front, path)
				if err != nil || h.Get("Status") != "200" || got != text(path) {
					s.Errorf("%s by %s: %s, %d bytes %.60q, %v", path, front, h.Get("Status"), len(got), got, err)
				}
				h, got, err = s.from(front, path, "Range: bytes=1000000-1999999")
				if want := text(path)[1_000_000:2_000_000]; err != nil || h.Get("Status") != "206" || got != want {
					s.Errorf("a part of %s by %s: %s, %d bytes, %v", path, front, h.Get("Status"), len(got), err)
				}
				if h, _, _ := s.from(front, path, "If-None-Match: "+h.Get("Etag")); h.Get("Status") != "304" {
					s.Errorf("%s by %s with the tag that it has: %s", path, front, h.Get("Status"))
				}
				if i == 1 { // what the one has the other's peer has from its sibling
					for _, p := range []*process{a, b} {
						eventually(s.T, time.Minute, p.name+" holds it", func() bool { return p.status().Store.Objects > 0 })
					}
				}
			}
		}
		s.Logf("the origin was asked %d times for two objects of three slices", o.count(""))
		if n := o.count(""); n > 8 {
			s.Errorf("the origin was asked %d times for two objects of three slices", n)
		}
		// A lifetime of 3 s that is spent in a peer is not begun again in Varnish, and ages are not lost.
		s.gets(b, "/brief?cc=max-age=4", 200, strings.Replace(text("/brief"), "127.0.0.1, 127.0.0.1", "127.0.0.1", 1))
		time.Sleep(2 * time.Second)
		h, _, _ := s.from(fronts[1], "/brief?cc=max-age=4")
		if age := h.Get("Age"); age != "2" && age != "3" {
			s.Errorf("Age is %q after 2 s: %v", age, h)
		}
		version++
		time.Sleep(2500 * time.Millisecond)
		if _, got, _ := s.from(fronts[1], "/brief?cc=max-age=4"); !strings.HasPrefix(got, "/brief version 1") {
			// Varnish's grace gives one
			if _, again, _ := s.from(fronts[1], "/brief?cc=max-age=4"); !strings.HasPrefix(again, "/brief version 1") {
				time.Sleep(time.Second)
				if _, again, _ := s.from(fronts[1], "/brief?cc=max-age=4"); !strings.HasPrefix(again, "/brief version 1") {
					s.Errorf("what was stored for 4 s is served after 5.5 s: %.40q", again)
				}
			}
		}
		a.quiet()
		b.quiet()
	}, "varnishd", "nginx")
}

// The same small application in PHP behind Apache, in Python behind gunicorn, and in Node. What a peer passes on is
// what the application answers, and only what may be stored is.
func TestStreetApplications(t *testing.T) {
	onTheStreet(t, func(s *street) {
		php := `<?php
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
file_put_contents('/run/street/php/asked', "$path\n", FILE_APPEND | LOCK_EX);
switch ($path) {
case '/page': header('Cache-Control: max-age=600'); header('Vary: Accept-Language'); echo 'page '.($_SERVER['HTTP_ACCEPT_LANGUAGE'] ?? ''); break;
case '/tagged': header('Cache-Control: no-cache'); header('ETag: "t"'); if (($_SERVER['HTTP_IF_NONE_MATCH'] ?? '') == '"t"') http_response_code(304); else echo 'tagged'; break;
case '/session': session_start(); $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; echo 'visit '.$_SESSION['n']; break;
case '/stream': header('Cache-Control: max-age=600'); for ($i = 0; $i < 40; $i++) { echo str_repeat("line $i\n", 1000); flush(); } break;
case '/post': echo $_SERVER['REQUEST_METHOD'].' '.file_get_contents('php://input'); break;
case '/error': http_response_code(500); echo 'error'; break;
case '/away': header('Location: /page', true, 302); break;
case '/empty': http_response_code(204); break;
default: http_response_code(404); echo 'none';
}`
		python := `import http.cookies
visits = {}
def app(environ, start):
    path, f, body, status = environ['PATH_INFO'], [], b'', '200 OK'
    with open('/run/street/python/asked', 'a') as log: log.write(path + '\n')
    if path == '/page': f, body = [('Cache-Control', 'max-age=600'), ('Vary', 'Accept-Language')], b'page ' + environ.get('HTTP_ACCEPT_LANGUAGE', '').encode()
    elif path == '/tagged':
        f = [('Cache-Control', 'no-cache'), ('ETag', '"t"')]
        if environ.get('HTTP_IF_NONE_MATCH') == '"t"': status = '304 Not Modified'
        else: body = b'tagged'
    elif path == '/session':
        c = http.cookies.SimpleCookie(environ.get('HTTP_COOKIE', ''))
        k = c['s'].value if 's' in c else str(len(visits) + 1)
        visits[k] = visits.get(k, 0) + 1
        f, body = [('Set-Cookie', 's=' + k)], b'visit %d' % visits[k]
    elif path == '/stream':
        start(status, [('Cache-Control', 'max-age=600'), ('Content-Type', 'text/plain')])
        return ((b'line %d\n' % i) * 1000 for i in range(40))
    elif path == '/post': body = environ['REQUEST_METHOD'].encode() + b' ' + environ['wsgi.input'].read()
    elif path == '/error': status, body = '500 Oops', b'error'
    elif path == '/away': status, f = '302 Found', [('Location', '/page')]
    elif path == '/empty': status = '204 No Content'
    else: status, body = '404 Not Found', b'none'
    if status[:3] not in ('204', '304'): f.append(('Content-Length', str(len(body))))
    start(status, f + [('Content-Type', 'text/plain')])
    return [body]
`
		node := `const fs = require('fs'), visits = {};
require('http').createServer((q, r) => {
  const path = q.url.split('?')[0], parts = [];
  fs.appendFileSync('/run/street/node/asked', path + '\n');
  q.on('data', d => parts.push(d)).on('end', () => {
    switch (path) {
    case '/page': r.writeHead(200, {'Cache-Control': 'max-age=600', Vary: 'Accept-Language'}); return r.end('page ' + (q.headers['accept-language'] || ''));
    case '/tagged': if (q.headers['if-none-match'] == '"t"') { r.writeHead(304, {'Cache-Control': 'no-cache', ETag: '"t"'}); return r.end(); }
      r.writeHead(200, {'Cache-Control': 'no-cache', ETag: '"t"'}); return r.end('tagged');
    case '/session': { let k = (q.headers.cookie || '').match(/s=(\d+)/); k = k ? k[1] : Object.keys(visits).length + 1; visits[k] = (visits[k] || 0) + 1;
      r.writeHead(200, {'Set-Cookie': 's=' + k}); return r.end('visit ' + visits[k]); }
    case '/stream': r.writeHead(200, {'Cache-Control': 'max-age=600'}); for (let i = 0; i < 40; i++) r.write(('line ' + i + '\n').repeat(1000)); return r.end();
    case '/post': return r.end(q.method + ' ' + Buffer.concat(parts));
    case '/error': r.writeHead(500); return r.end('error');
    case '/away': r.writeHead(302, {Location: '/page'}); return r.end();
    case '/empty': r.writeHead(204); return r.end();
    default: r.writeHead(404); r.end('none');
    }
  });
}).listen(8083, '127.0.0.1');
`
		s.file("php/www/index.php", php)
		if fpm, err := filepath.Glob("/usr/sbin/php-fpm*"); err != nil || len(fpm) == 0 {
			s.Skip("php-fpm is not installed")
		} else {
			conf := s.file("php/fpm.conf",
				"[global]\nerror_log = /run/street/php/error.log\n[www]\nuser = www-data\nlisten = 127.0.0.1:9000\npm = static\npm.max_children = 3\nphp_value[session.save_path] = /run/street/php\n")
			os.Chmod("/run/street/php", 0o777)
			s.server("", "127.0.0.1:9000", fpm[0], "-F", "-y", conf)
		}
		modules := ""
		for _, m := range strings.Fields("mpm_event authz_core dir proxy proxy_fcgi deflate filter mime") {
			modules += fmt.Sprintf("LoadModule %s_module /usr/lib/apache2/modules/mod_%[1]s.so\n", m)
		}
		s.server("", "127.0.0.1:8081", "apache2", "-D", "FOREGROUND", "-f", s.file("apache.conf", modules+`ServerName php.test
ServerRoot /run/street/php
PidFile /run/street/php/pid
ErrorLog /run/street/php/apache.log
Listen 127.0.0.1:8081
User www-data
Group www-data
TypesConfig /etc/mime.types
DocumentRoot /run/street/php/www
AddOutputFilterByType DEFLATE text/html
<Directory /run/street/php/www>
	Require all granted
	FallbackResource /index.php
</Directory>
<FilesMatch \.php$>
	SetHandler "proxy:fcgi://127.0.0.1:9000"
</FilesMatch>
`))
		s.file("python/app.py", python)
		s.server("", "127.0.0.1:8082", "gunicorn", "-b", "127.0.0.1:8082", "--chdir", "/run/street/python",
			"--worker-tmp-dir", "/run/street/python", "app:app")
		s.file("node/x", "")
		s.server("", "127.0.0.1:8083", "node", s.file("app.js", node))

		var peers []*process
		for i, name := range []string{"php", "python", "node"} {
			app := fmt.Sprint("127.0.0.1:808", i+1)
			p := s.peer("", name, "127.0.0.1", "--origin", "http://"+app)
			asked := func(path string) int { return s.lines("/run/street/"+name+"/asked", path+"\n") }
			same := func(path string, fields ...string) http.Header {
				s.Helper()
				direct, want, err1 := s.from(app, path, fields...)
				h, got, err2 := s.from(p.listen, path, fields...)
				if err1 != nil || err2 != nil || got != want || h.Get("Status") != direct.Get("Status") {
					s.Errorf("%s %s %v: %s %.40q, %v; the application: %s %.40q, %v", name, path, fields, h.Get("Status"), got, err2,
						direct.Get("Status"), want, err1)
				}
				for _, field := range []string{"Content-Type", "Content-Encoding", "Vary", "Etag", "Location", "Cache-Control"} {
					if h.Get(field) != direct.Get(field) && h.Get("Status") != "304" {
						s.Errorf("%s %s %v: %s: %q, the application: %q", name, path, fields, field, h.Get(field), direct.Get(field))
					}
				}
				return h
			}
			for range 2 {
				for _, path := range []string{"/page", "/tagged", "/stream", "/error", "/away", "/empty", "/none"} {
					same(path)
					same(path, "Accept-Language: de")
					same(path, "Accept-Encoding: gzip")
				}
				same("/tagged", `If-None-Match: "t"`)
			}
			before := asked("/page") + asked("/stream")
			for range 3 {
				s.from(p.listen, "/page", "Accept-Language: de")
				s.from(p.listen, "/page")
				s.from(p.listen, "/stream")
			}
			if n := asked("/page") + asked("/stream") - before; n > 0 {
				s.Errorf("%s was asked %d times for what is stored", name, n)
			}
			var cookies []string
			for i := range 3 { // three strangers, each with a session
				h, body, err := s.from(p.listen, "/session")
				if err != nil || body != "visit 1" || h.Get("Set-Cookie") == "" {
					s.Errorf("%s: stranger %d: %q %v %v", name, i, body, h, err)
				}
				cookie, _, _ := strings.Cut(h.Get("Set-Cookie"), ";")
				cookies = append(cookies, "Cookie: "+cookie)
			}
			for _, c := range cookies {
				if _, body, err := s.from(p.listen, "/session", c); err != nil || body != "visit 2" {
					s.Errorf("%s: %s: %q %v", name, c, body, err)
				}
			}
			for i := range 3 {
				text := strings.Repeat(fmt.Sprint("post ", i), 20_000)
				if status, body := send(s.T, p.listen, "POST", "/post", text, nil); status != 200 || body != "POST "+text {
					s.Errorf("%s: POST: %d %.40q", name, status, body)
				}
			}
			peers = append(peers, p)
		}
		time.Sleep(5500 * time.Millisecond) // Apache and Node close kept connections after 5 s
		for _, p := range peers {
			for range 3 {
				s.gets(p, "/none", 404, "none")
			}
			p.quiet()
		}
	}, "apache2", "gunicorn", "node")
}
