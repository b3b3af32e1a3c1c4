package config

import (
	_ "embed" // for the settings
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// settings says what the settings are for.
//
//go:embed settings.help
var settings string

// variable returns the environment variable of a setting.
func variable(name string) string {
	return "PEER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// describe gives flags what a table has for the help, in its order: a line each of name, placeholder and help, below a
// line of the commands that have them and the title of their group. Settings get their variables, too.
func describe(table string, areSettings bool) kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		var commands []string
		var group *kong.Group
		for line := range strings.Lines(table) {
			line = strings.TrimSuffix(line, "\n")
			if heading, ok := strings.CutPrefix(line, "# "); ok {
				names, title, titled := strings.Cut(heading, " | ")
				if commands, group = strings.Fields(names), nil; titled {
					group = &kong.Group{Key: title, Title: title}
				}
				continue
			}
			f, known := strings.SplitN(line, " | ", 3), false
			for _, command := range k.Model.Children {
				i := slices.IndexFunc(command.Flags, func(flag *kong.Flag) bool { return flag.Name == f[0] })
				if i < 0 || !slices.Contains(commands, command.Name) {
					continue
				}
				flag := command.Flags[i]
				flag.PlaceHolder, flag.Tag.PlaceHolder, flag.Help, flag.Group, known = f[1], f[1], f[2], group, true
				if areSettings {
					flag.Tag.Envs, flag.Envs = []string{variable(f[0])}, []string{variable(f[0])}
				}
			}
			if !known {
				return fmt.Errorf("%s have no flag of the name %q", strings.Join(commands, ", "), f[0])
			}
		}
		return nil
	})
}
