package config

import (
	_ "embed" // for the settings
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// settings says what the settings are for, in the order of the help: a line each of name, placeholder and help, below
// the title of their group.
//
//go:embed settings.txt
var settings string

// variable returns the environment variable of a setting.
func variable(name string) string {
	return "PEER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// describe gives the flags that are settings their variables, placeholders, helps and groups. The commands that have
// settings have --config.
func describe(k *kong.Kong) error {
	var group *kong.Group
	for line := range strings.Lines(settings) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "# "); ok {
			group = &kong.Group{Key: title, Title: title}
			continue
		}
		f, known := strings.SplitN(strings.TrimSpace(line), " | ", 3), false
		for _, command := range k.Model.Children {
			named := func(name string) int {
				return slices.IndexFunc(command.Flags, func(flag *kong.Flag) bool { return flag.Name == name })
			}
			if i := named(f[0]); i >= 0 && named("config") >= 0 {
				flag := command.Flags[i]
				known = true
				flag.Tag.Envs, flag.Envs = []string{variable(f[0])}, []string{variable(f[0])}
				flag.PlaceHolder, flag.Tag.PlaceHolder, flag.Help, flag.Group = f[1], f[1], f[2], group
			}
		}
		if !known {
			return fmt.Errorf("settings.txt: no field of Config has the name %q", f[0])
		}
	}
	return nil
}
