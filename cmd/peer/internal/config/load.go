package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// An Effective is the value of a setting that is in effect.
type Effective struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // a flag, a variable, FILE:LINE, or "default"
	List   bool   `json:"-"`      // it is a list in the file; Value has an item per line
}

// Load completes the settings of the selected command, in which c is embedded, from the
// configuration file, checks all of them, and sets the other fields of c. The error joins all
// mistakes.
func (f *Flags) Load(ctx *kong.Context, c *Config) ([]Effective, error) {
	k := &checker{Config: c, where: make(map[string]string), wrong: make(map[string]bool)}
	flags := slices.DeleteFunc(slices.Clone(ctx.Selected().Flags), func(flag *kong.Flag) bool { return !isSetting(flag) })
	var entries map[string]entry
	if c.File != "" {
		entries, k.errs = readFile(c.File, flags)
	}
	var list []Effective
	for _, flag := range flags {
		r, source := f.reading(ctx, flag), "default"
		k.where[flag.Name] = "--" + flag.Name
		_, inEnvironment := os.LookupEnv(flag.Envs[0])
		e, inFile := entries[flag.Name]
		switch {
		case given(ctx, flag):
			source = "--" + flag.Name
		case inEnvironment:
			source = flag.Envs[0]
			k.where[flag.Name] = source
		case inFile:
			source = fmt.Sprintf("%s:%d", c.File, e.line)
			k.where[flag.Name] = source + ": " + flag.Name
			flag.Target.SetZero()
			r = read(flag.Target, flag.Tag, e.values)
		}
		for _, m := range r.wrong {
			k.wrong[flag.Name] = true
			k.fail(flag.Name, m.Value, errors.New(m.Reason))
		}
		list = append(list, Effective{Name: flag.Name, Value: strings.Join(r.texts, ","), Source: source})
	}
	k.check(entries)
	if len(k.errs) > 0 {
		return nil, errors.Join(k.errs...)
	}
	computed := map[string]string{"name": c.Name, "advertise": c.Advertise, "store": c.Store,
		"objects": fmt.Sprint(c.Objects)}
	for i := range list {
		if v := computed[list[i].Name]; v != "" {
			list[i].Value = v
		}
	}
	for _, name := range []string{"rules", "sites"} {
		e := Effective{Name: name, Value: strings.Join(lines(entries[name].items), "\n"), Source: "default", List: true}
		if e.Value != "" {
			e.Source = c.File
		}
		list = append(list, e)
	}
	return list, nil
}

// platforms matches the variables, with their values, that Kubernetes sets for a service whose name begins with peer.
var platforms = regexp.MustCompile(`_SERVICE_HOST=|_SERVICE_PORT[_=]|_PORT_[0-9]+_(TCP|UDP|SCTP)(_ADDR|_PORT|_PROTO)?=|_PORT=\w+://`)

// Strays returns a mistake for each environment variable that begins with PEER_, is no setting, and is
// not one that platforms set themselves.
func Strays(environ []string) (strays []error) {
	var known []string
	for field := range reflect.TypeFor[Config]().Fields() {
		known = append(known, variable(field.Tag.Get("name")))
	}
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "PEER_") || slices.Contains(known, name) || platforms.MatchString(e) {
			continue
		}
		near := ""
		if i := slices.IndexFunc(known, func(k string) bool { return distance(name, k) <= 2 }); i >= 0 {
			near = ", did you mean " + known[i] + "?"
		}
		strays = append(strays, fmt.Errorf("the variable %s is not a setting%s", name, near))
	}
	return strays
}
