package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A Source is where a setting got its value.
type Source struct {
	Kind  string // "flag", "environment", "file" or "default"
	Where string // as an error names it: --name, PEER_NAME or FILE:LINE: name
}

// An Effective is a setting as it will be used.
type Effective struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // where from, as a person would say it
	List   bool   `json:"-"`      // it is a list of the file; Value has an item a line
}

// A Mistake is one thing that is wrong with a configuration.
type Mistake struct {
	Where  string // the setting, by the place that it was made in
	Value  string
	Reason string // continues the sentence that begins with the value
}

func (m *Mistake) Error() string {
	if m.Value == "" {
		return m.Where + " " + m.Reason
	}
	return fmt.Sprintf("%s %q %s", m.Where, m.Value, m.Reason)
}

// Load completes the settings that kong parsed into s, which is embedded in the
// selected command, by those of the file that they name, and checks them all. The
// error joins every mistake. s is changed in place.
func Load(ctx *kong.Context, s *Settings) (Config, []Effective, error) {
	flags := settingFlags(ctx.Selected().Flags)
	sources := sourcesOf(ctx, flags)
	var errs []error
	var lists map[string]entry
	if s.Config != "" {
		lists, errs = overlay(s.Config, flags, sources)
	}
	c, mistakes := check(s, sources, lists)
	if err := errors.Join(append(errs, mistakes...)...); err != nil {
		return Config{}, nil, err
	}
	return c, effective(flags, sources, c), nil
}

// settingFlags are those of a command's flags that are fields of [Settings].
func settingFlags(all []*kong.Flag) []*kong.Flag {
	names := make(map[string]bool)
	for field := range reflect.TypeFor[Settings]().Fields() {
		names[field.Tag.Get("name")] = true
	}
	var flags []*kong.Flag
	for _, f := range all {
		if names[f.Name] {
			flags = append(flags, f)
		}
	}
	return flags
}

func sourcesOf(ctx *kong.Context, flags []*kong.Flag) map[string]Source {
	sources := make(map[string]Source)
	for _, f := range flags {
		sources[f.Name] = Source{"default", "--" + f.Name}
		for _, env := range f.Envs {
			if _, ok := os.LookupEnv(env); ok {
				sources[f.Name] = Source{"environment", env}
			}
		}
	}
	for _, p := range ctx.Path {
		if p.Flag != nil {
			sources[p.Flag.Name] = Source{"flag", "--" + p.Flag.Name}
		}
	}
	return sources
}

// overlay gives the settings that are neither flags nor in the environment the
// values that a file has for them. It returns the file's entries.
func overlay(path string, flags []*kong.Flag, sources map[string]Source) (map[string]entry, []error) {
	names := make(map[string]bool)
	for name := range sections {
		names[name] = true
		sources[name] = Source{"file", path}
	}
	for _, f := range flags {
		if f.Name != "config" {
			names[f.Name] = f.IsSlice()
		}
	}
	entries, errs := readFile(path, names)
	for _, f := range flags {
		e, ok := entries[f.Name]
		if !ok || sources[f.Name].Kind != "default" {
			continue
		}
		sources[f.Name] = Source{"file", fmt.Sprintf("%s:%d: %s", path, e.line, f.Name)}
		if f.IsSlice() {
			f.Target.Set(reflect.ValueOf(e.values))
		} else {
			f.Target.SetString(e.values[0])
		}
	}
	return entries, errs
}

// effective lists what the settings came to, in the order of the help.
func effective(flags []*kong.Flag, sources map[string]Source, c Config) []Effective {
	computed := map[string]string{
		"name": c.Name, "advertise": c.Advertise, "store": c.Store, "digests": c.Digests, "objects": fmt.Sprint(c.Objects),
	}
	var list []Effective
	for _, f := range flags {
		e := Effective{Name: f.Name, Value: text(f.Target), Source: sources[f.Name].Where}
		switch sources[f.Name].Kind {
		case "default":
			e.Source = "default"
		case "file":
			e.Source = strings.TrimSuffix(e.Source, ": "+f.Name)
		}
		if v, ok := computed[f.Name]; ok && v != "" {
			e.Value = v
		}
		list = append(list, e)
	}
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		e := Effective{Name: name, Source: "default", List: true}
		if from, ok := sources[name]; ok {
			e.Source = from.Where
		}
		if e.Value = c.text(name); e.Value == "" {
			e.Source = "default"
		}
		list = append(list, e)
	}
	return list
}

func text(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		return strings.Join(v.Interface().([]string), ",")
	}
	return v.String()
}

// Strays returns a warning for every variable of the environment that looks like
// a misspelt PEER_* setting. Others that begin with PEER_ are left alone: container
// platforms make such names of their own.
func Strays(environ []string) []string {
	var known []string
	for field := range reflect.TypeFor[Settings]().Fields() {
		known = append(known, field.Tag.Get("env"))
	}
	var strays []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "PEER_") {
			continue
		}
		near := ""
		for _, k := range known {
			if d := distance(name, k); d == 0 {
				near = ""
				break
			} else if d <= 2 {
				near = k
			}
		}
		if near != "" {
			strays = append(strays, fmt.Sprintf("the variable %s is no setting, did you mean %s?", name, near))
		}
	}
	return strays
}
