package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write deploy/grafana.json")

// A dashPanel is a panel of the dashboard, or a row without queries. In a query, $r is the interval of a
// rate, and each metric is selected by job and instance.
type dashPanel struct {
	title, about, unit string
	width              int // of 24; 6 is a number, others are charts
	queries            [][2]string
}

var dashboard = []dashPanel{
	{title: "Requests"},
	{"Ready", "Peers that are ready for traffic.", "none", 6, [][2]string{{"sum(peer_ready)", "ready"}}},
	{"Requests a second", "", "reqps", 6, [][2]string{{"sum(rate(peer_requests_total[$r]))", "requests"}}},
	{"Served without the origin", "Of the requests of the last hour.", "percentunit", 6, [][2]string{
		{`sum(increase(peer_requests_total{outcome=~"local-hit|sibling-hit|collapsed|revalidated"}[1h])) / sum(increase(peer_requests_total[1h]))`, "served"}}},
	{"False hits", "Of the requests to siblings in the last hour.", "percentunit", 6, [][2]string{
		{`sum(increase(peer_sibling_requests_total{result="false-hit"}[1h])) / sum(increase(peer_sibling_requests_total[1h]))`, "false hits"}}},
	{"Requests by outcome", "", "reqps", 12, [][2]string{{"sum by (outcome) (rate(peer_requests_total[$r]))", "{{outcome}}"}}},
	{"Time to the end of the answer", "", "s", 12, [][2]string{
		{"histogram_quantile(0.5, sum by (le) (rate(peer_request_duration_seconds_bucket[$r])))", "half"},
		{"histogram_quantile(0.99, sum by (le) (rate(peer_request_duration_seconds_bucket[$r])))", "99 of 100"}}},
	{"Body bytes", "", "Bps", 12, [][2]string{{"sum by (way) (rate(peer_body_bytes_total[$r]))", "{{way}}"},
		{"sum by (zone) (rate(peer_zone_body_bytes_total[$r]))", "from siblings of zone {{zone}}"}}},
	{"Not stored, by reason", "", "reqps", 12, [][2]string{{"sum by (reason) (rate(peer_not_stored_total[$r]))", "{{reason}}"}}},

	{title: "What goes wrong"},
	{"Degraded, or hanging", "The parts are those of /healthz.", "none", 8, [][2]string{
		{"max by (part, instance) (peer_degraded) > 0", "{{instance}} {{part}} is degraded"}, {"max by (part, instance) (peer_part_hangs) > 0", "{{instance}} {{part}} hangs"}}},
	{"Errors", "", "reqps", 8, [][2]string{
		{"sum(rate(peer_origin_errors_total[$r]))", "no answer of an origin"}, {`sum(rate(peer_requests_total{outcome="gateway-error"}[$r]))`, "answers 502 to 504"},
		{"sum(rate(peer_broken_bodies_total[$r]))", "bodies cut short"}, {"sum(rate(peer_store_write_errors_total[$r]))", "not written to the disk"},
		{"sum(rate(peer_store_corrupt_total[$r]))", "corrupt on the disk"}}},
	{"Origins", "", "short", 8, [][2]string{
		{"sum(rate(peer_origin_requests_total[$r]))", "requests a second"}, {"max by (instance) (peer_origins_failing)", "{{instance}} failing"},
		{"sum(rate(peer_stale_served_total[$r]))", "stale answers a second"}}},
	{"Bodies that a source did not finish", "", "ops", 8, [][2]string{
		{"sum(rate(peer_bodies_resumed_total[$r]))", "resumed"}, {"sum(rate(peer_bodies_taken_over_total[$r]))", "taken over"}, {"sum(rate(peer_bodies_cut_total[$r]))", "cut"}}},
	{"Connections", "", "short", 8, [][2]string{
		{"sum(peer_connections)", "open"}, {"sum(rate(peer_connections_dropped_total[$r]))", "dropped a second"}, {"sum(rate(peer_connections_refused_total[$r]))", "refused a second"}}},
	{"Late for lack of processor time", "", "s", 8, [][2]string{{"peer_late_seconds", "{{instance}}"}}},

	{title: "Memory and configuration"},
	{"Memory by account", "", "bytes", 12, [][2]string{
		{"sum by (account) (peer_memory_held_bytes)", "{{account}}"}, {"sum(peer_memory_budget_bytes)", "budget"}, {"sum(peer_memory_limit_bytes)", "limit"}}},
	{"Memory refused", "", "ops", 12, [][2]string{{"sum by (account) (rate(peer_memory_refused_total[$r]))", "{{account}}"}}},
	{"Last reload", "1: it succeeded; 0: it was refused.", "none", 8, [][2]string{
		{"min by (instance) (peer_config_last_reload_successful)", "{{instance}}"}}},
	{"Age of configuration and process", "", "s", 8, [][2]string{
		{"time() - peer_config_last_reload_success_timestamp_seconds", "{{instance}} configuration"}, {"time() - peer_start_time_seconds", "{{instance}} process"}}},
	{"Certificates and builds", "Time until a certificate expires; builds that run.", "s", 8, [][2]string{
		{"peer_certificate_end_time_seconds - time()", "{{instance}}"}, {"count by (version) (peer_build_info)", "build {{version}}"}}},

	{title: "Siblings"},
	{"Requests to siblings", "", "reqps", 12, [][2]string{{"sum by (result) (rate(peer_sibling_requests_total[$r]))", "{{result}}"}}},
	{"Answers to siblings", "", "reqps", 12, [][2]string{{"sum by (result) (rate(peer_sibling_answers_total[$r]))", "{{result}}"}}},
	{"False hits: seen and promised", "What a digest promises is a share of absent objects; of the requests sent it is less, since most find what they ask for.", "percentunit", 12, [][2]string{
		{`sum by (instance) (rate(peer_sibling_requests_total{result="false-hit"}[$r])) / sum by (instance) (rate(peer_sibling_requests_total[$r]))`, "{{instance}} seen"},
		{"peer_digest_false_positive_ratio", "{{instance}} promised"}}},
	{"Answers that siblings lost", "", "short", 12, [][2]string{
		{"peer_sibling_lost_ratio", "{{instance}} lost share"}, {"sum(rate(peer_sibling_spared_total[$r]))", "not sent a second"}, {"sum(rate(peer_sibling_excused_total[$r]))", "excused a second"}}},
	{"Deadline and round trip", "", "s", 8, [][2]string{
		{"peer_sibling_deadline_seconds", "{{instance}} deadline"}, {"max by (member) (peer_member_round_trip_seconds)", "{{member}} round trip"}}},
	{"Hedged requests", "", "ops", 8, [][2]string{{"sum by (result) (rate(peer_sibling_hedges_total[$r]))", "{{result}}"}}},
	{"Fetches shared through the key's owner", "", "ops", 8, [][2]string{{"sum by (result) (rate(peer_collapse_total[$r]))", "{{result}}"}}},
	{"Siblings' answers compared with the origin's", "", "ops", 12, [][2]string{
		{"sum by (result) (rate(peer_sibling_compared_total[$r]))", "{{result}}"}, {"sum(increase(peer_sibling_accused_total[1h]))", "quarantines in an hour"}}},
	{"Members alive", "", "short", 12, [][2]string{{"sum by (instance) (peer_member_up)", "{{instance}}"},
		{"sum by (instance) (increase(peer_joins_refused_total[5m])) > 0", "{{instance}}: joins refused in five minutes"}}},
	{"Requests to a member, by result", "", "reqps", 12, [][2]string{
		{"sum by (member) (rate(peer_member_hits_total[$r]))", "{{member}} hits"}, {"sum by (member) (rate(peer_member_false_hits_total[$r]))", "{{member}} false hits"},
		{"sum by (member) (rate(peer_member_failures_total[$r]))", "{{member}} failed"}}},
	{"Members quarantined, or with an old digest", "", "none", 12, [][2]string{
		{"max by (member) (peer_member_quarantined) > 0", "{{member}} is quarantined"}, {"1 - min by (member) (peer_member_digest_current) > 0", "{{member}} has another digest"}}},

	{title: "Digests"},
	{"Bytes sent", "", "Bps", 8, [][2]string{
		{"sum by (kind) (rate(peer_digest_sent_bytes_total[$r]))", "{{kind}}"}, {"sum by (way) (rate(peer_membership_bytes_total[$r]))", "membership {{way}}"},
		{"sum by (way) (rate(peer_sealing_bytes_total[$r]))", "encryption {{way}}"}}},
	{"Bytes received", "", "Bps", 8, [][2]string{
		{"sum by (kind) (rate(peer_digest_received_bytes_total[$r]))", "{{kind}}"}}},
	{"Messages", "", "ops", 8, [][2]string{
		{"sum by (kind) (rate(peer_digest_sent_total[$r]))", "{{kind}} sent"}, {"sum by (kind) (rate(peer_digest_received_total[$r]))", "{{kind}} received"},
		{"sum(rate(peer_digest_versions_total[$r]))", "versions published"}}},
	{"Age of the digests held", "", "s", 8, [][2]string{{"max by (member) (peer_member_digest_age_seconds)", "{{member}}"}}},
	{"Repairs, divergences, refusals, plans", "In five minutes.", "short", 8, [][2]string{
		{"sum(increase(peer_digest_repairs_total[5m]))", "repairs"}, {"sum(increase(peer_digest_divergences_total[5m]))", "divergences"},
		{"sum(increase(peer_digest_rejected_total[5m]))", "refusals"}, {"sum(increase(peer_digest_replans_total[5m]))", "plans"}}},
	{"Memory for digests", "", "bytes", 8, [][2]string{{"peer_digest_replica_bytes", "{{instance}} replicas"}, {"peer_digest_index_bytes", "{{instance}} index"}}},
	{"Objects in the digest", "", "short", 12, [][2]string{{"peer_digest_keys", "{{instance}}"}, {"peer_digest_planned_keys", "{{instance}} planned for"}}},
	{"Objects in the members' digests", "", "short", 12, [][2]string{{"max by (member) (peer_member_digest_keys)", "{{member}}"}}},
	{"Light peers and their questions", "Questions in five minutes. Of those asked, some are unanswered or not-yet; of those answered, some are deferred.", "short", 24, [][2]string{
		{"sum by (result) (increase(peer_questions_total[5m]))", "questions {{result}}"}, {"sum by (result) (increase(peer_named_total[5m]))", "named, {{result}}"},
		{"sum(peer_light)", "light peers"}}},

	{title: "Store"},
	{"Bytes on disk", "", "bytes", 8, [][2]string{
		{"peer_store_bytes", "{{instance}}"}, {"peer_store_garbage_bytes", "{{instance}} removed"}, {"peer_store_room_bytes", "{{instance}} room"}, {"peer_store_max_bytes", "{{instance}} limit"}}},
	{"Objects, and bytes of hot ones in memory", "", "short", 8, [][2]string{{"peer_store_objects", "{{instance}}"}, {"peer_store_memory_bytes", "{{instance}} bytes in memory"}}},
	{"Inserts, evictions, background reads", "", "short", 8, [][2]string{
		{"sum(rate(peer_store_inserts_total[$r]))", "inserts a second"}, {"sum(rate(peer_store_evictions_total[$r]))", "evictions a second"},
		{"sum(rate(peer_store_scrubbed_bytes_total[$r]))", "bytes read a second"}, {"sum(increase(peer_store_scrub_passes_total[1d]))", "passes in a day"}}},
}

type jsonObject = map[string]any

var metric = regexp.MustCompile(`(peer_\w+)(?:\{([^}]*)\})?`)

// json returns the panel with an id at a place.
func (p *dashPanel) json(id, x, y int) jsonObject {
	source := jsonObject{"type": "prometheus", "uid": "${datasource}"}
	o := jsonObject{"id": id, "title": p.title, "gridPos": jsonObject{"h": p.height(), "w": p.width, "x": x, "y": y}}
	if p.queries == nil {
		o["type"], o["collapsed"], o["panels"] = "row", false, []jsonObject{}
		o["gridPos"].(jsonObject)["w"] = 24
		return o
	}
	var targets []jsonObject
	for i, q := range p.queries {
		expr := metric.ReplaceAllStringFunc(q[0], func(s string) string {
			m := metric.FindStringSubmatch(s)
			selector := `job=~"$job",instance=~"$instance"`
			if m[2] != "" {
				selector += "," + m[2]
			}
			return m[1] + "{" + selector + "}"
		})
		targets = append(targets, jsonObject{"refId": string(rune('A' + i)), "datasource": source, "expr": strings.ReplaceAll(expr, "$r", "$__rate_interval"), "legendFormat": q[1]})
	}
	o["type"], o["description"], o["datasource"], o["targets"] = "timeseries", p.about, source, targets
	o["fieldConfig"] = jsonObject{"defaults": jsonObject{"unit": p.unit}, "overrides": []jsonObject{}}
	o["options"] = jsonObject{"legend": jsonObject{"displayMode": "list", "placement": "bottom"}, "tooltip": jsonObject{"mode": "multi", "sort": "desc"}}
	if p.width == 6 {
		o["type"], o["options"] = "stat", jsonObject{"reduceOptions": jsonObject{"calcs": []string{"lastNotNull"}}}
	}
	return o
}

func (p *dashPanel) height() int {
	switch {
	case p.queries == nil:
		return 1
	case p.width == 6:
		return 4
	}
	return 8
}

// dashboardJSON returns the dashboard, with a line for each panel.
func dashboardJSON(t *testing.T) string {
	variable := func(name, label, query string) jsonObject {
		return jsonObject{"name": name, "type": "query", "label": label, "datasource": jsonObject{"type": "prometheus", "uid": "${datasource}"},
			"query": jsonObject{"query": query, "refId": name}, "refresh": 2, "includeAll": true, "multi": true, "current": jsonObject{"text": "All", "value": "$__all"}}
	}
	line := func(v any) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(b.String())
	}
	frame := jsonObject{"title": "summarycache peers", "uid": "summarycache-peers", "tags": []string{"cache", "summarycache"}, "schemaVersion": 39, "version": 2,
		"editable": true, "refresh": "30s", "time": jsonObject{"from": "now-3h", "to": "now"}, "annotations": jsonObject{"list": []jsonObject{}},
		"templating": jsonObject{"list": []jsonObject{{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
			variable("job", "Job", "label_values(peer_ready, job)"), variable("instance", "Peer", `label_values(peer_ready{job=~"$job"}, instance)`)}}}
	text := strings.TrimSuffix(line(frame), "}") + ",\"panels\":[\n"
	x, y, bottom := 0, 0, 0
	for i := range dashboard {
		p := &dashboard[i]
		if p.queries == nil || x+p.width > 24 {
			x, y = 0, bottom
		}
		if i > 0 {
			text += ",\n"
		}
		text += line(p.json(i+1, x, y))
		x, bottom = x+p.width, max(bottom, y+p.height())
		if p.queries == nil {
			y = bottom
		}
	}
	return text + "\n]}\n"
}

// The dashboard in deploy is the one above, and shows every metric.
func TestDashboard(t *testing.T) {
	text := dashboardJSON(t)
	if file := filepath.Join("deploy", "grafana.json"); *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if deployed(t, "grafana.json") != text {
		t.Errorf("%s is not the dashboard of this test: go test ./cmd/peer -run Dashboard -update", file)
	}
	var board struct {
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal([]byte(text), &board); err != nil {
		t.Fatal(err)
	}
	known, shown, taken := documentedMetrics(t), make(map[string]bool), make(map[[2]int]string)
	for _, p := range board.Panels {
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" || at[0] >= 24 {
					t.Fatalf("%s covers %s, or is out of the grid", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
		for _, target := range p.Targets {
			for _, name := range regexp.MustCompile(`peer_\w+`).FindAllString(target.Expr, -1) {
				shown[strings.TrimSuffix(name, "_bucket")] = true
				if !known[name] {
					t.Errorf("%s: no metric %s", p.Title, name)
				}
			}
			if strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") || strings.Count(target.Expr, "{") != strings.Count(target.Expr, "}") {
				t.Errorf("%s: %s", p.Title, target.Expr)
			}
		}
	}
	rules := "groups:\n  - name: all\n    rules:\n"
	for i, p := range board.Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$job", "x", "$instance", "x").Replace(target.Expr)
			rules += fmt.Sprintf("      - {record: \"panel%d%s\", expr: %q}\n", i, target.RefID, expr)
		}
	}
	if promtool, err := exec.LookPath("promtool"); err != nil {
		t.Log("promtool is not here, so it does not check the queries")
	} else if out, err := exec.Command(promtool, "check", "rules", write(t, "rules.yaml", rules)).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
	for name := range known {
		if !shown[strings.TrimSuffix(name, "_bucket")] {
			t.Errorf("no panel shows %s", name)
		}
	}
}
