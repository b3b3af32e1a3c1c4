//go:build linux

package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Debian's apt, git, npm, go, curl and wget as users of two peers, one after the other. Each gets what its server
// has, and the new version when there is one; what it has fetched by the first peer is not fetched from the server
// again by the second. skopeo is in TestSkopeo, gRPC's client in internal/grpctest.
func TestStreetUsers(t *testing.T) {
	onTheStreet(t, func(s *street) {
		const www = "/run/street/www/"
		var mu sync.Mutex
		asked := make(map[string]int)
		files := http.FileServer(http.Dir(www))
		git := &cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Root: "/git",
			Env: []string{"GIT_PROJECT_ROOT=/run/street/git", "GIT_HTTP_EXPORT_ALL=1"}}
		l, err := net.Listen("tcp", "127.0.0.1:80")
		if err != nil {
			s.Fatal(err)
		}
		go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked[r.URL.Path]++
			mu.Unlock()
			switch {
			case strings.HasPrefix(r.URL.Path, "/git/"):
				git.ServeHTTP(w, r)
				return
			case strings.HasPrefix(r.URL.Path, "/npm/") && !strings.HasSuffix(r.URL.Path, ".tgz"):
				w.Header().Set("Cache-Control", "public, max-age=300")
				w.Header().Set("Content-Type", "application/json")
			case !strings.HasPrefix(r.URL.Path, "/deb/") || strings.HasSuffix(r.URL.Path, ".deb"):
				w.Header().Set("Cache-Control", "public, max-age=3600")
			}
			files.ServeHTTP(w, r)
		}))
		count := func(part string) (n int) {
			mu.Lock()
			defer mu.Unlock()
			for path, k := range asked {
				if strings.Contains(path, part) {
					n += k
				}
			}
			return n
		}
		a := s.peer("", "a", "127.0.0.1", "--origin", "http://127.0.0.1")
		b := s.peer("", "b", "127.0.0.1", "--origin", "http://127.0.0.1", "--join", a.gossip)
		peers := []*process{a, b}
		run := func(dir, script string, env ...string) string {
			s.Helper()
			cmd := exec.CommandContext(s.Context(), "sh", "-euc", script)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), append(env, "HOME=/run/street", "no_proxy=*")...)
			return s.finish(cmd)
		}
		// known waits until b knows that a holds what a URL names.
		known := func(path string) {
			s.Helper()
			eventually(s.T, time.Minute, "b knows that a holds "+path, func() bool {
				time.Sleep(100 * time.Millisecond)
				return strings.Contains(words(s.T, 0, "why", path, "--admin", b.admin), "a alive any yes")
			})
		}
		once := func(part string, most int) {
			s.Helper()
			if n := count(part); n == 0 || n > most {
				s.Errorf("%s was asked for %d times at the origin, want %d at most", part, n, most)
			}
		}

		// curl resumes several downloads at once, and wget one.
		for i := range 4 {
			s.file(fmt.Sprintf("www/large/%d.bin", i), noise(byte(10+i), 6<<20))
		}
		for i, p := range peers {
			dir := filepath.Dir(s.file(fmt.Sprintf("curl%d/0.bin", i), noise(10, 6<<20)[:2_000_000+i]))
			s.file(fmt.Sprintf("curl%d/3.bin", i), noise(13, 6<<20)[:1<<20])
			run(dir,
				"curl -sS --fail --parallel -C - -O http://"+p.listen+"/large/0.bin -C - -O http://"+p.listen+"/large/1.bin -C - -O http://"+p.listen+"/large/2.bin; wget -q -c http://"+p.listen+"/large/3.bin")
			for k := range 4 {
				if got, err := os.ReadFile(fmt.Sprintf("%s/%d.bin", dir, k)); err != nil || string(got) != noise(byte(10+k),
					6<<20) {
					s.Errorf("%d.bin by %s has %d bytes, %v", k, p.name, len(got), err)
				}
			}
			if p == a {
				eventually(s.T, time.Minute, "b knows what a holds", func() bool {
					m, _ := b.member("a")
					return m.Current && m.Keys >= uint64(a.status().Store.Objects)
				})
			}
		}
		for k := range 4 {
			once(fmt.Sprintf("/large/%d.bin", k), 13) // by each peer six slices of 1 MiB, and the answer that began
		}
		once("/large/", 28) // most come from the sibling; on a busy machine not all

		// git clones, and pulls what is new.
		run("/run/street",
			`git init -q -b main work; cd work; git config user.email a@test; git config user.name a; seq 20000 >f; git add f; git commit -qm one; cd ..; git clone -q --bare work git/x.git`)
		for _, p := range peers {
			run("/run/street", "git clone -q http://"+p.listen+"/git/x.git clone-"+p.name)
		}
		run("/run/street/work", "seq 30000 >f; git commit -qam two; git push -q ../git/x.git main")
		head := run("/run/street/work", "git rev-parse HEAD")
		for _, p := range peers {
			if got := run("/run/street/clone-"+p.name, "git pull -q; git rev-parse HEAD; git fsck"); got != head {
				s.Errorf("git pull by %s: %s, want %s", p.name, got, head)
			}
		}

		// go gets a module.
		const mod = "www/go/example.org/m/@v/"
		var archive bytes.Buffer
		z := zip.NewWriter(&archive)
		for name, text := range map[string]string{"go.mod": "module example.org/m\n", "m.go": "package m\n// " +
			strings.Repeat("x", 100_000)} {
			f, err := z.Create("example.org/m@v1.0.0/" + name)
			if err != nil {
				s.Fatal(err)
			}
			io.WriteString(f, text)
		}
		z.Close()
		s.file(mod+"v1.0.0.zip", archive.String())
		s.file(mod+"v1.0.0.mod", "module example.org/m\n")
		s.file(mod+"v1.0.0.info", `{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`)
		s.file(mod+"list", "v1.0.0\n")
		for _, p := range peers {
			dir := filepath.Dir(s.file("go-"+p.name+"/go.mod", "module x\ngo 1.20\nrequire example.org/m v1.0.0\n"))
			run(dir, "go mod download -modcacherw example.org/m", "GOPROXY=http://"+p.listen+"/go", "GOMODCACHE="+dir+"/cache",
				"GOSUMDB=off", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local")
			if _, err := os.Stat(dir + "/cache/example.org/m@v1.0.0/m.go"); err != nil {
				s.Error(err)
			}
			if p == a {
				known("/go/example.org/m/@v/v1.0.0.zip")
			}
		}
		once("/m/@v/v1.0.0.zip", 1)

		// npm installs a package, and a new version of it.
		pack := func(version string) {
			dir := filepath.Dir(s.file("npm-"+version+"/package.json", `{"name":"left","version":"`+version+`"}`))
			s.file("npm-"+version+"/index.js", strings.Repeat("// "+version+"\n", 10_000))
			run(dir, "npm pack --silent >/dev/null; mkdir -p "+www+"npm/left/-; cp *.tgz "+www+"npm/left/-/")
		}
		pack("1.0.0")
		meta := func(versions ...string) {
			text := `{"name":"left","dist-tags":{"latest":"` + versions[len(versions)-1] + `"},"versions":{`
			for i, v := range versions {
				sum := strings.Fields(run(www+"npm/left/-", "sha1sum left-"+v+".tgz"))[0]
				text += strings.Repeat(",", min(i,
					1)) + fmt.Sprintf(`%q:{"name":"left","version":%[1]q,"dist":{"shasum":%q,"tarball":"http://registry.test/npm/left/-/left-%[1]s.tgz"}}`, v, sum)
			}
			s.file("www/npm/left/index.html", text+"}}")
		}
		meta("1.0.0")
		install := func(p *process, want string) {
			dir := filepath.Dir(s.file("node-"+p.name+"/package.json", "{}"))
			run(dir,
				"rm -rf node_modules package-lock.json cache; npm install --silent --no-audit --no-fund --replace-registry-host=always --prefer-online --cache ./cache --registry http://"+p.listen+"/npm/ left@latest")
			if got, err := os.ReadFile(dir + "/node_modules/left/index.js"); err != nil || !strings.HasPrefix(string(got),
				"// "+want) {
				s.Errorf("npm by %s: %.20q, %v, want %s", p.name, got, err, want)
			}
		}
		install(a, "1.0.0")
		known("/npm/left/-/left-1.0.0.tgz")
		install(b, "1.0.0")
		pack("1.1.0")
		meta("1.0.0", "1.1.0")
		// as the mirror's owner would
		words(s.T, 0, "purge", "--prefix", "/npm/", "--everywhere", "--admin", a.status().Addresses.Socket)
		install(a, "1.1.0")
		known("/npm/left/-/left-1.1.0.tgz")
		install(b, "1.1.0")
		once("/left-1.0.0.tgz", 1)
		once("/left-1.1.0.tgz", 1)

		// apt has an index that changes, and packages that don't.
		publish := func(version string) {
			s.file("deb-"+version+"/DEBIAN/control",
				"Package: hello-street\nVersion: "+version+"\nArchitecture: all\nMaintainer: a <a@test>\nDescription: x\n")
			s.file("deb-"+version+"/usr/share/hello", strings.Repeat(version, 50_000))
			run("/run/street",
				`mkdir -p www/deb; dpkg-deb -b --root-owner-group deb-`+version+` www/deb/hello_`+version+`.deb >/dev/null; cd www/deb; : >Packages
for f in *.deb; do dpkg-deb -f $f >>Packages; printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' $f $(stat -c %s $f) $(sha256sum $f | cut -d' ' -f1) >>Packages; done
printf 'Date: %s\nSHA256:\n %s %s Packages\n' "$(date -Ru)" $(sha256sum Packages | cut -d' ' -f1) $(stat -c %s Packages) >Release`)
		}
		apt := func(p *process, want string) {
			s.Helper()
			dir := "/run/street/apt-" + p.name
			run("/", "mkdir -p "+dir+"/lists/partial "+dir+"/cache/archives/partial")
			s.file("apt-"+p.name+"/sources.list", "deb [trusted=yes] http://"+p.listen+"/deb ./\n")
			options := fmt.Sprintf("-qq -o Dir::Etc::sourcelist=%[1]s/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=%[1]s/lists -o Dir::Cache=%[1]s/cache -o APT::Sandbox::User=root -o Acquire::http::Proxy=DIRECT -o Acquire::Languages=none", dir)
			got := run(dir,
				"apt-get "+options+" update 2>&1; apt-get "+options+" download hello-street 2>&1; dpkg-deb -f $(ls -t *.deb | head -n 1) Version")
			if strings.TrimSpace(got) != want {
				s.Errorf("apt by %s: %s, want %s", p.name, got, want)
			}
		}
		for _, version := range []string{"1.0", "1.1"} {
			publish(version)
			time.Sleep(1100 * time.Millisecond) // Last-Modified has whole seconds
			apt(a, version)
			known("/deb/hello_" + version + ".deb")
			apt(b, version)
			once("hello_"+version+".deb", 1)
		}
		for _, p := range peers {
			p.quiet()
			if n := p.status().Traffic.BodiesCut; n > 0 {
				s.Errorf("%s has cut %d answers", p.name, n)
			}
		}
	}, "apt-get", "git", "npm", "go", "curl", "wget", "dpkg-deb")
}
