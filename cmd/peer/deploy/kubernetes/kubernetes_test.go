// Package kubernetes checks the manifests against the types of the Kubernetes API. It is a
// module of its own, so that nobody inherits its dependencies.
package kubernetes

import (
	"bytes"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func TestManifests(t *testing.T) {
	text, err := os.ReadFile("../kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set appsv1.StatefulSet
	var budget policyv1.PodDisruptionBudget
	var services []corev1.Service
	for i, document := range bytes.Split(text, []byte("\n---\n")) {
		var kind struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &kind); err != nil {
			t.Fatal(err)
		}
		var into any
		switch kind.APIVersion + " " + kind.Kind {
		case "v1 Service":
			services = append(services, corev1.Service{})
			into = &services[len(services)-1]
		case "policy/v1 PodDisruptionBudget":
			into = &budget
		case "apps/v1 StatefulSet":
			into = &set
		default:
			t.Fatalf("document %d is a %v", i+1, kind)
		}
		// Strict: a field that the type has not is an error, as is one of another kind.
		if err := yaml.UnmarshalStrict(document, into, yaml.DisallowUnknownFields); err != nil {
			t.Errorf("document %d, %s: %v", i+1, kind.Kind, err)
		}
	}
	labels := set.Spec.Template.Labels
	selects := map[string]map[string]string{"StatefulSet": set.Spec.Selector.MatchLabels, "PodDisruptionBudget": budget.Spec.Selector.MatchLabels}
	headless := false
	for _, s := range services {
		selects["Service "+s.Name] = s.Spec.Selector
		headless = headless || s.Name == set.Spec.ServiceName && s.Spec.ClusterIP == corev1.ClusterIPNone
		for _, p := range s.Spec.Ports {
			if p.TargetPort.StrVal != "" && !hasPort(set, p.TargetPort.StrVal) {
				t.Errorf("%s sends to port %s, which no container has", s.Name, p.TargetPort.StrVal)
			}
		}
	}
	for who, selector := range selects {
		for key, value := range selector {
			if labels[key] != value {
				t.Errorf("%s selects %s=%s, the pods have %v", who, key, value, labels)
			}
		}
		if len(selector) == 0 {
			t.Errorf("%s selects everything", who)
		}
	}
	if !headless {
		t.Errorf("no headless service %s", set.Spec.ServiceName)
	}
	pod := set.Spec.Template.Spec
	for _, m := range pod.Containers[0].VolumeMounts {
		known := m.Name == set.Spec.VolumeClaimTemplates[0].Name
		for _, v := range pod.Volumes {
			known = known || m.Name == v.Name
		}
		if !known {
			t.Errorf("%s is no volume", m.Name)
		}
	}
}

func hasPort(set appsv1.StatefulSet, name string) bool {
	for _, p := range set.Spec.Template.Spec.Containers[0].Ports {
		if p.Name == name {
			return true
		}
	}
	return false
}
