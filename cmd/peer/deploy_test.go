package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// Operators start from the files in deploy, so that these must stay correct.

func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestExampleConfiguration(t *testing.T) {
	t.Setenv("PEER_ADVERTISE", "cache-1") // this machine may have no address but loopback
	text := words(t, 0, "validate", "--config", filepath.Join("deploy", "peer.yaml"))
	holds(t, text, "The configuration is good.", "store-size 10GiB", "drain 20s")
	// What stands in comments must be right as well, once it is wanted.
	secret := write(t, "secret", "0123456789abcdef")
	all := regexp.MustCompile(`(?m)^#([a-z-]+:)`).ReplaceAllString(deployed(t, "peer.yaml"), "$1")
	all = strings.NewReplacer("/etc/peer/secret", secret, "/etc/peer/token", secret).Replace(all)
	holds(t, words(t, 0, "validate", "--config", write(t, "peer.yaml", all)), "name cache-1", "objects 300000", "secret-file "+secret)
}

// composed is the part of a compose file that the tests use.
type composed struct {
	Services map[string]struct {
		Build struct {
			Context, Dockerfile string
		}
		Image       string
		Command     []string
		Environment map[string]string
		Ports       []string
		Volumes     []string
		Secrets     []string
	}
	Volumes map[string]any
	Secrets map[string]struct{ File string }
}

func TestComposeFile(t *testing.T) {
	var c composed
	// A key beside a merge of the same key overrides it.
	if err := yaml.UnmarshalWithOptions([]byte(deployed(t, "compose.yaml")), &c, yaml.AllowDuplicateMapKey()); err != nil {
		t.Fatal(err)
	}
	if len(c.Services) != 3 {
		t.Fatalf("%d services", len(c.Services))
	}
	published := make(map[string]string)
	for name, s := range c.Services {
		if _, err := os.Stat(filepath.Join("deploy", s.Build.Context, s.Build.Dockerfile)); err != nil {
			t.Errorf("%s is built from files that do not exist: %v", name, err)
		}
		for _, p := range s.Ports {
			if other := published[p]; other != "" || !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s; %q does too, or it is open to the network", name, p, other)
			}
			published[p] = name
		}
		for _, v := range s.Volumes {
			volume, dir, _ := strings.Cut(v, ":")
			if _, ok := c.Volumes[volume]; !ok || dir != s.Environment["PEER_STORE"] {
				t.Errorf("%s mounts %s and stores in %s", name, v, s.Environment["PEER_STORE"])
			}
		}
		for _, secret := range s.Secrets {
			if c.Secrets[secret].File == "" || s.Environment["PEER_SECRET_FILE"] != "/run/secrets/"+secret {
				t.Errorf("%s reads %s, but has the secret %s", name, s.Environment["PEER_SECRET_FILE"], secret)
			}
		}
		for member := range c.Services {
			if !strings.Contains(s.Environment["PEER_JOIN"], member+":7946") {
				t.Errorf("%s does not join %s", name, member)
			}
		}
		t.Run(name, func(t *testing.T) { composedSettings(t, s.Environment) })
	}
	if out, err := exec.Command("docker", "compose", "version").CombinedOutput(); err != nil {
		t.Logf("docker compose is not here, so it does not check the file itself: %s", strings.TrimSpace(string(out)))
		return
	}
	cmd := exec.Command("docker", "compose", "-f", filepath.Join("deploy", "compose.yaml"), "config", "--quiet")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("docker compose config: %v\n%s", err, out)
	}
}

// composedSettings has the program validate the settings of one service.
func composedSettings(t *testing.T, environment map[string]string) {
	t.Setenv("PEER_ADVERTISE", "cache-1") // this machine may have no address but loopback
	for name, value := range environment {
		if variable, ok := strings.CutPrefix(value, "${ORIGIN:-"); ok {
			value = strings.TrimSuffix(variable, "}")
		}
		if name == "PEER_SECRET_FILE" {
			value = write(t, "secret", "0123456789abcdef")
		}
		t.Setenv(name, value)
	}
	holds(t, words(t, 0, "validate"), "The configuration is good.", fmt.Sprintf("name %s PEER_NAME", environment["PEER_NAME"]))
}

func TestSystemdUnits(t *testing.T) {
	unit, socket := deployed(t, "peer.service"), deployed(t, "peer.socket")
	for name, text := range map[string]string{"peer.service": unit, "peer.socket": socket} {
		section := ""
		for i, line := range strings.Split(text, "\n") {
			switch {
			case line == "" || strings.HasPrefix(line, "#"):
			case strings.HasPrefix(line, "["):
				section = line
			case section == "" || !regexp.MustCompile(`^[A-Z][A-Za-z]+=\S`).MatchString(line):
				t.Errorf("%s:%d: %q is not a setting", name, i+1, line)
			}
		}
	}
	if !strings.Contains(socket, "FileDescriptorName=listen\n") {
		t.Error("the socket has no name that peer takes")
	}
	for _, want := range []string{"Type=notify\n", "ExecReload=/usr/bin/peer reload --admin /var/cache/peer/admin.sock\n", "WatchdogSec=", "DynamicUser=yes\n", "ProtectSystem=strict\n",
		"ExecStart=/usr/bin/peer run --config /etc/peer/peer.yaml\n", "CacheDirectory=peer\n"} {
		if !strings.Contains(unit, want) {
			t.Errorf("the unit lacks %q", want)
		}
	}
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not here, so it does not check the unit itself")
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	service := write("peer.service", strings.ReplaceAll(unit, "/usr/bin/peer", self)) // with a program that is there
	if out, err := exec.Command(tool, "verify", "--man=no", service, write("peer.socket", socket)).CombinedOutput(); err != nil || strings.Contains(string(out), "peer.s") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// documentedMetrics returns the names that a query may use.
func documentedMetrics(t *testing.T) map[string]bool {
	text, err := os.ReadFile("METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+)").FindAllStringSubmatch(string(text), -1) {
		known[m[1]] = true
		if m[2] == "histogram" {
			known[m[1]+"_bucket"] = true
		}
	}
	return known
}

// TestAlerts runs Prometheus' own tests of the alerts, if promtool is installed.
func TestAlerts(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations struct{ Summary, See string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(deployed(t, "alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("OPERATING.md")
	if err != nil {
		t.Fatal(err)
	}
	known, rules := documentedMetrics(t), 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules++
			if see := r.Annotations.See; see == "" || !strings.Contains(string(page), "\n## "+see+"\n") && !strings.Contains(string(page), "\n### "+see+"\n") &&
				!strings.Contains(string(page), "\n**… "+see) {
				t.Errorf("%s: OPERATING.md has no %q", r.Alert, see)
			}
			for _, name := range regexp.MustCompile(`peer_\w+`).FindAllString(r.Expr, -1) {
				if !known[name] {
					t.Errorf("%s: no metric %s", r.Alert, name)
				}
			}
		}
	}
	if rules < 10 {
		t.Errorf("only %d alerts", rules)
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not here, so it does not try the alerts")
		return
	}
	if out, err := exec.Command(promtool, "test", "rules", filepath.Join("deploy", "alerts_test.yaml")).CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
}

// TestKubernetes has the program validate the settings of the manifests, and checks that their
// other parts agree. Module deploy/kubernetes checks them against the API's types.
func TestKubernetes(t *testing.T) {
	type probe struct {
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
	}
	var pods struct {
		Kind string
		Spec struct {
			ServiceName string `yaml:"serviceName"`
			Template    struct {
				Metadata struct{ Annotations map[string]string }
				Spec     struct {
					Containers []struct {
						Args  []string
						Env   []struct{ Name, Value string }
						Ports []struct {
							Name          string
							ContainerPort int `yaml:"containerPort"`
							Protocol      string
						}
						Startup      probe `yaml:"startupProbe"`
						Readiness    probe `yaml:"readinessProbe"`
						Liveness     probe `yaml:"livenessProbe"`
						VolumeMounts []struct {
							MountPath string `yaml:"mountPath"`
						} `yaml:"volumeMounts"`
					}
				}
			}
		}
	}
	documents := strings.Split(deployed(t, "kubernetes.yaml"), "\n---\n")
	if err := yaml.Unmarshal([]byte(documents[len(documents)-1]), &pods); err != nil || pods.Kind != "StatefulSet" {
		t.Fatalf("%q is last, %v", pods.Kind, err)
	}
	c := pods.Spec.Template.Spec.Containers[0]
	environment := map[string]string{"PEER_NAME": "peer-0"}
	for _, e := range c.Env {
		if e.Value != "" {
			environment[e.Name] = e.Value
		}
	}
	ports := map[string]string{}
	for _, p := range c.Ports {
		ports[p.Name] = fmt.Sprint(":", p.ContainerPort)
	}
	for port, setting := range map[string]string{"http": "PEER_LISTEN", "admin": "PEER_ADMIN", "gossip": "PEER_GOSSIP", "gossip-udp": "PEER_GOSSIP"} {
		if ports[port] == "" || ports[port] != environment[setting] {
			t.Errorf("port %s is %q, %s %q", port, ports[port], setting, environment[setting])
		}
	}
	if environment["PEER_JOIN"] != pods.Spec.ServiceName+environment["PEER_GOSSIP"] {
		t.Errorf("the peers join %s, their service is %s", environment["PEER_JOIN"], pods.Spec.ServiceName)
	}
	if got := pods.Spec.Template.Metadata.Annotations["prometheus.io/port"]; ":"+got != environment["PEER_ADMIN"] {
		t.Errorf("metrics are looked for at port %s", got)
	}
	for want, p := range map[string][]probe{"/healthz": {c.Startup, c.Liveness}, "/readyz": {c.Readiness}} {
		for _, p := range p {
			if p.HTTPGet.Path != want || p.HTTPGet.Port != "admin" {
				t.Errorf("a probe asks %v, want %s of admin", p.HTTPGet, want)
			}
		}
	}
	for _, path := range []string{environment["PEER_STORE"], environment["PEER_SECRET_FILE"]} {
		mounted := false
		for _, m := range c.VolumeMounts {
			mounted = mounted || strings.HasPrefix(path, m.MountPath+"/")
		}
		if !mounted {
			t.Errorf("%s is in no volume", path)
		}
	}
	if len(c.Args) != 1 || c.Args[0] != "run" {
		t.Errorf("the container runs %q", c.Args)
	}
	composedSettings(t, environment)
}
