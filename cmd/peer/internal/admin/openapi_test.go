package admin

import (
	"bytes"
	"encoding"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// object is one of JSON's.
type object map[string]any

// operations are the operations of the listener, by pattern, without profiles.
var operations = map[string]object{
	"GET /{$}": described("The status page", "The status page for browsers; for others a list of paths.", nil,
		answers{"200": {"text/html": schemaOf("string", ""), "text/plain": schemaOf("string", "")}}),
	"GET /healthz": described("Whether the peer works", "Says `ok`, or what is degraded, a line each. 503 means that a part of the peer hangs: no progress for 10 s though there was work.", nil,
		answers{"200": text(), "503": text()}),
	"GET /readyz": described("Whether the peer may be sent requests", "The second line has its version and when it started. 503 while it starts, and from the moment on when it is told to stop.", nil,
		answers{"200": text(), "503": text()}),
	"GET /status":      described("The status, as a text", "What `peer status` prints.", nil, answers{"200": text()}),
	"GET /status.json": described("The status", "Everything about the peer as it is now.", nil, answers{"200": jsonOf[Status]()}),
	"GET /misses.json": described("Recent misses", "The last requests of clients that were not answered from the store, and why. Each peer remembers 4,096.", []object{
		query("url", false, "A part of the URL.", object{"type": "string"}), query("site", false, "Its host.", object{"type": "string"}),
		query("reason", false, "After fwd or detail in Cache-Status.", object{"type": "string"}), query("outcome", false, "As in the metric peer_requests_total.", object{"type": "string"}),
		query("since", false, "Only later ones, RFC 3339.", object{"type": "string", "format": "date-time"}), query("last", false, "So many.", object{"type": "integer"}),
		query("queries", false, "1 = URLs with their queries.", object{"type": "string"}), query("everywhere", false, "1 = of all peers.", object{"type": "string"}),
	}, answers{"200": jsonOf[Misses](), "400": text()}),
	"GET /cluster.json": described("The status of the whole cluster", "What every peer says of itself, this one first. Those that do not answer within a second have an error in their row.", nil,
		answers{"200": jsonOf[Cluster]()}),
	"GET /history.json": described("The last hour and day", "Samples, the oldest first; the last is of now and is always there.", []object{
		query("since", false, "Only samples after this time.", object{"type": "string", "format": "date-time"}),
	}, answers{"200": jsonOf[[]Sample](), "400": text()}),
	"GET /events.json": described("The last lines of the log", "At most 100, from level info on, the latest first.", nil, answers{"200": jsonOf[[]Event]()}),
	"GET /metrics":     described("Metrics for Prometheus", "See METRICS.md for each of them.", nil, answers{"200": text()}),
	"GET /why": described("What would become of a request", "Why a URL would be a hit or a miss here: what is stored for it, which digests match, and what the other peers store.", []object{
		query("url", true, "Absolute, or a path to a reverse proxy.", object{"type": "string"}),
		query("method", false, "Of the request; without it GET.", object{"type": "string"}),
		query("header", false, "A header field of the request, `NAME: VALUE`; may be repeated.", object{"type": "array", "items": object{"type": "string"}}),
	}, answers{"200": jsonOf[Explanation](), "400": text(), "503": text()}),
	"GET /digest": described("A digest", "In the format of digest/FORMAT.md: this peer's, as published, or its copy of another's.", []object{
		query("peer", false, "The name of the peer; without it, this one.", object{"type": "string"}),
	}, answers{"200": {"application/octet-stream": schemaOf("string", "binary")}, "404": text(), "500": text(), "503": text()}),
	"POST /purge": commanded[PurgeRequest, PurgeReport]("Remove responses",
		"Removes what is stored for a URL, for all URLs that begin with it, or under tags; here or at every peer."),
	"POST /reload": commanded[ReloadRequest, ReloadReport]("Reload the configuration",
		"Reads the configuration again and applies what can change while the peer runs, all or nothing."),
	"POST /replace": commanded[ReplaceRequest, ReplaceReport]("Replace the program",
		"Has the peer's program file, which an upgrade may have changed, check the configuration and continue in the peer's process. The answer comes before that: `started` in /status.json changes when it has happened."),
	"POST /session": commanded[SessionRequest, Session]("A token for a browser",
		"A token that commands may present until the peer's process ends, as `peer open` prints it in a link."),
	"GET /openapi.json": described("This description", "", nil, answers{"200": {"application/json": schemaOf("object", "")}}),
}

func commanded[In, Out any](summary, does string) object {
	o := described(summary, does+" Commands need the token of --admin-token-file or of a session, or come by the peer's Unix socket; none may have come through a proxy.", nil,
		answers{"200": jsonOf[Out](), "400": text(), "401": text(), "403": text()})
	o["requestBody"] = object{"required": true, "content": jsonOf[In]()}
	o["security"] = []object{{}, {"token": []string{}}}
	return o
}

// answers are the contents of answers, by status.
type answers map[string]object

func described(summary, text string, parameters []object, by answers) object {
	responses := object{}
	for status, content := range by {
		responses[status] = object{"description": map[string]string{"200": "Done.", "400": "The request is wrong, as the text says.", "404": "There is no digest of that peer.",
			"500": "It failed, as the text says.", "503": "Not now, as the text says: a part of the peer hangs, or it is not ready."}[status], "content": content}
	}
	o := object{"summary": summary, "responses": responses}
	if text != "" {
		o["description"] = text
	}
	if parameters != nil {
		o["parameters"] = parameters
	}
	return o
}

func query(name string, required bool, text string, schema object) object {
	return object{"in": "query", "name": name, "required": required, "description": text, "schema": schema}
}

func schemaOf(kind, format string) object {
	s := object{"type": kind}
	if format != "" {
		s["format"] = format
	}
	return object{"schema": s}
}

func text() object { return object{"text/plain": schemaOf("string", "")} }

func jsonOf[T any]() object { return object{"application/json": reflect.TypeFor[T]()} }

// TestOpenAPI: the description names every path of the listener, and its schemas are those of the
// Go types.
func TestOpenAPI(t *testing.T) {
	patterns := patternsOf(t)
	for p := range operations {
		if !slices.Contains(patterns, p) {
			t.Errorf("%s is described, and there is no such pattern", p)
		}
	}
	d := describer{t: t, schemas: object{}, types: map[string]reflect.Type{}, comments: map[string]map[string]string{}}
	paths := object{}
	for _, p := range patterns {
		o, ok := operations[p]
		if !ok {
			if !strings.HasPrefix(p, "GET /debug/pprof/") {
				t.Errorf("%s is not described", p)
			}
			continue
		}
		method, path, _ := strings.Cut(p, " ")
		d.resolve(o)
		paths[strings.TrimSuffix(path, "{$}")] = object{strings.ToLower(method): o}
	}
	text, err := json.MarshalIndent(object{
		"openapi": "3.0.3",
		"info": object{"title": "Admin API of a summarycache peer", "version": "1",
			"description": "What the admin listener (--admin) answers. Besides the statuses of each operation: 401 for a command without the token, 403 for one from another machine if there is no token, " +
				"and for requests through proxies, 421 for a host name with a dot that --admin-host does not name. Those, and errors, are texts.\n\nGenerated from the program: `go test ./cmd/peer/internal/admin -update`."},
		"paths": paths,
		"components": object{"schemas": d.schemas,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "The token of --admin-token-file."}}},
	}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile("openapi.json", text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(text, description) {
		t.Error("openapi.json is not what the program has: run go test ./cmd/peer/internal/admin -update")
	}
}

// patternsOf returns the patterns that the package's files pass to a ServeMux.
func patternsOf(t *testing.T) (list []string) {
	t.Helper()
	for _, f := range parsed(t, ".") {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			pattern := -1 // which argument is one
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				if strings.HasPrefix(f.Sel.Name, "Handle") {
					pattern = 0
				}
			case *ast.Ident:
				if f.Name == "command" {
					pattern = 1
				}
			}
			if pattern < 0 {
				return true
			}
			if first, text := call.Args[pattern].(*ast.BasicLit); text {
				p, _ := strconv.Unquote(first.Value)
				list = append(list, p)
			}
			return true
		})
	}
	slices.Sort(list)
	if len(list) < len(operations) {
		t.Fatalf("%d patterns", len(list))
	}
	return list
}

func parsed(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// A describer makes schemas of types.
type describer struct {
	t        *testing.T
	schemas  object
	types    map[string]reflect.Type      // by the name of the schema
	comments map[string]map[string]string // on fields, "Type.Field", by package
}

// resolve replaces types by schemas.
func (d *describer) resolve(o object) {
	for k, v := range o {
		switch v := v.(type) {
		case reflect.Type:
			o[k] = object{"schema": d.schema(v)}
		case object:
			d.resolve(v)
		}
	}
}

func (d *describer) schema(t reflect.Type) object {
	if t == reflect.TypeFor[time.Time]() {
		return object{"type": "string", "format": "date-time"}
	}
	if t.Kind() != reflect.Pointer && (t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())) {
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "nullable": true, "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "nullable": true, "additionalProperties": d.schema(t.Elem())}
	case reflect.Pointer:
		return object{"nullable": true, "allOf": []object{d.schema(t.Elem())}}
	case reflect.Struct:
		name := t.Name()
		if other := d.types[name]; other != nil && other != t {
			d.t.Fatalf("two types are named %s", name)
		} else if other == nil {
			d.types[name] = t
			d.schemas[name] = d.fields(t)
		}
		return object{"$ref": "#/components/schemas/" + name}
	}
	d.t.Fatalf("no schema for %v", t)
	return nil
}

func (d *describer) fields(t reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		owner := t
		for _, i := range f.Index[:len(f.Index)-1] {
			owner = owner.Field(i).Type
		}
		if name == "" {
			name = f.Name
		}
		s := d.schema(f.Type)
		if text := d.comment(owner, f.Name); text != "" {
			if s["$ref"] != nil {
				s = object{"allOf": []object{s}} // a $ref has no neighbours
			}
			s["description"] = text
		}
		properties[name] = s
		if !strings.Contains(options, "omit") && t != reflect.TypeFor[PurgeRequest]() { // which is a request
			required = append(required, name)
		}
	}
	o := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// comment returns the comment beside or above a field.
func (d *describer) comment(of reflect.Type, field string) string {
	const module = "github.com/summarycache/summarycache/"
	all, ok := d.comments[of.PkgPath()]
	if !ok {
		all = map[string]string{}
		d.comments[of.PkgPath()] = all
		for _, f := range parsed(d.t, filepath.Join("../../../..", strings.TrimPrefix(of.PkgPath(), module))) {
			ast.Inspect(f, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				if s, ok := spec.Type.(*ast.StructType); ok {
					for _, f := range s.Fields.List {
						text := f.Comment.Text()
						if f.Doc != nil && len(f.Names) == 1 {
							text = f.Doc.Text()
						}
						for _, name := range f.Names {
							all[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(text), " ")
						}
					}
				}
				return false
			})
		}
	}
	return all[of.Name()+"."+field]
}
