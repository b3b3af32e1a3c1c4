//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The package for Debian says what it needs, is installed, upgraded with the operator's configuration in
// place, and removed: then the service is stopped, and after a purge nothing of it is left.
func TestDebianPackage(t *testing.T) {
	for _, tool := range []string{"dpkg", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("there is no " + tool)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("dpkg installs for root only")
	}
	nfpm := nfpmBinary(t)
	stage, work, root := t.TempDir(), t.TempDir(), t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(stage, "peer"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config := "name: cache-1\n"
	for _, name := range []string{"peer.1.gz", "LICENSE", "THIRD-PARTY-LICENSES", "README.md", "CHANGELOG.md", "SECURITY.md", "OPERATING.md", "SITES.md", "METRICS.md",
		"SQUID.md", "alerts.yaml", "grafana.json", "peer.bash", "peer.fish", "peer.zsh", "peer.service", "peer.socket", "peer.yaml"} {
		text := config
		if strings.HasPrefix(name, "peer.s") {
			text = deployed(t, name)
		}
		if err := os.WriteFile(filepath.Join(stage, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pack := func(version string) string {
		t.Helper()
		file := filepath.Join(work, version+".deb")
		cmd := exec.Command(nfpm, "package", "-f", "cmd/peer/deploy/nfpm.yaml", "-p", "deb", "-t", file)
		cmd.Dir = root0(t)
		cmd.Env = append(os.Environ(), "ARCH="+runtime.GOARCH, "VERSION="+version, "STAGE="+stage, "COMPLETIONS="+stage)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("nfpm: %v\n%s", err, out)
		}
		return file
	}
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("var/lib/dpkg/status", "", 0o644)
	put("run/systemd/system/x", "", 0o644)
	put("bin/systemctl", "#!/bin/sh\necho \"$*\" >>"+root+"/calls\n", 0o755)
	calls := func() string {
		text, _ := os.ReadFile(filepath.Join(root, "calls"))
		os.Remove(filepath.Join(root, "calls"))
		return strings.Join(strings.Fields(string(text)), " ")
	}
	dpkg := func(args ...string) (string, error) {
		cmd := exec.Command("dpkg", append([]string{"--root=" + root, "--force-script-chrootless", "--force-confdef", "--force-confold"}, args...)...)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"), "DEBIAN_FRONTEND=noninteractive")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(args ...string) {
		t.Helper()
		if out, err := dpkg(args...); err != nil {
			t.Fatalf("dpkg %q: %v\n%s", args, err, out)
		}
	}
	exists := func(name string) bool {
		_, err := os.Lstat(filepath.Join(root, name))
		return err == nil
	}
	first := pack("0.0.1")
	if out, err := dpkg("-i", first); err == nil || !strings.Contains(out, "depends on ca-certificates") {
		t.Errorf("without certificates: %v\n%s", err, out)
	}
	must("--purge", "summarycache-peer")
	put("var/lib/dpkg/status", "Package: ca-certificates\nStatus: install ok installed\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n", 0o644)
	calls()

	must("-i", first)
	if got := calls(); got != "daemon-reload" {
		t.Errorf("an installation calls systemctl %s", got)
	}
	if out, err := exec.Command(filepath.Join(root, "usr/bin/peer"), "validate", "--config", filepath.Join(root, "etc/peer/peer.yaml")).CombinedOutput(); err != nil {
		t.Errorf("the installed program: %v\n%s", err, out)
	}
	for _, name := range []string{"usr/share/bash-completion/completions/peer", "usr/share/fish/vendor_completions.d/peer.fish", "usr/share/zsh/vendor-completions/_peer",
		"usr/lib/systemd/system/peer.service", "usr/lib/systemd/system/peer.socket"} {
		if !exists(name) {
			t.Errorf("%s is not installed", name)
		}
	}
	put("etc/peer/peer.yaml", "name: mine\n", 0o644)
	put("var/cache/private/peer/objects/x", "x", 0o600)
	if err := os.WriteFile(filepath.Join(stage, "peer.yaml"), []byte("name: cache-2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	must("-i", pack("0.0.2"))
	if got := calls(); got != "daemon-reload try-restart peer.service" && got != "daemon-reload daemon-reload try-restart peer.service" {
		t.Errorf("an upgrade calls systemctl %s", got)
	}
	if text, err := os.ReadFile(filepath.Join(root, "etc/peer/peer.yaml")); err != nil || string(text) != "name: mine\n" {
		t.Errorf("the configuration after an upgrade: %q, %v", text, err)
	}
	must("--remove", "summarycache-peer")
	if got := calls(); !strings.HasPrefix(got, "--no-reload disable --now peer.socket peer.service") || exists("usr/bin/peer") || !exists("var/cache/private/peer/objects/x") || !exists("etc/peer/peer.yaml") {
		t.Errorf("a removal calls systemctl %s", got)
	}
	must("--purge", "summarycache-peer")
	for _, name := range []string{"var/cache/private/peer", "var/cache/peer", "etc/peer", "usr/lib/systemd/system/peer.service"} {
		if exists(name) {
			t.Errorf("a purge leaves %s", name)
		}
	}
}

// What rpm passes to the scripts does the same: 0 packages are left, or 2 are there.
func TestScriptsOfRPM(t *testing.T) {
	for _, c := range []struct{ script, arg, want string }{
		{"postinstall.sh", "1", "daemon-reload"}, {"postinstall.sh", "2", "daemon-reload try-restart peer.service"},
		{"preremove.sh", "1", ""}, {"preremove.sh", "0", "--no-reload disable --now peer.socket peer.service"},
		{"postremove.sh", "1", "daemon-reload"}, {"postremove.sh", "0", "daemon-reload"},
	} {
		dir := t.TempDir()
		for _, d := range []string{"run/systemd/system", "var/cache/private/peer"} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte("#!/bin/sh\necho \"$*\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sh", filepath.Join("deploy", "package", c.script), c.arg)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "DPKG_ROOT=" + dir}
		out, err := cmd.CombinedOutput()
		if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != c.want {
			t.Errorf("%s %s calls systemctl %s, %v; want %s", c.script, c.arg, got, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "var/cache/private/peer")); (err == nil) == (c.script == "postremove.sh" && c.arg == "0") {
			t.Errorf("%s %s: the cache: %v", c.script, c.arg, err)
		}
	}
}

// root0 returns the repository's root.
func root0(t *testing.T) string {
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// nfpmBinary returns the program that .ci/release makes packages by. With -long it is made if it is not
// here.
func nfpmBinary(t *testing.T) string {
	if path, err := exec.LookPath("nfpm"); err == nil {
		return path
	}
	if !*long {
		t.Skip("there is no nfpm: -long makes it")
	}
	script, err := os.ReadFile(filepath.Join(root, ".ci", "release"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(script), "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "NFPM=") })
	dir := t.TempDir()
	cmd := exec.Command("go", "install", strings.TrimPrefix(lines[i], "NFPM="))
	cmd.Env = append(os.Environ(), "GOBIN="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("%w\n%s", err, out))
	}
	return filepath.Join(dir, "nfpm")
}
