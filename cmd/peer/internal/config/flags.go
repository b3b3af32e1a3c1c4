package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// Flags decodes flags whose fields have one of the [kinds] as their `type`. It collects all
// mistakes, where kong would stop at the first. Use it for one parse.
type Flags struct {
	given    map[*kong.Value]reading // values of the command line
	fallback map[*kong.Value]reading // values of variables, and defaults
}

// A reading is the text of a value, and its mistakes.
type reading struct {
	texts []string
	wrong []mistake // without a place
}

// NewFlags returns a decoder, and the options with which a parser uses it. commands has the helps of the flags that are
// no settings, in the form of settings.help.
func NewFlags(commands string) (*Flags, []kong.Option) {
	f := &Flags{make(map[*kong.Value]reading), make(map[*kong.Value]reading)}
	options := []kong.Option{describe(settings, true), describe(commands, false)}
	for kind := range kinds {
		options = append(options, kong.NamedMapper(kind, kong.MapperFunc(f.decode)))
	}
	return f, options
}

func (f *Flags) decode(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.Peek(), error(nil)
	// a negative number, and no flag
	if text := fmt.Sprint(token.Value); len(text) > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9' {
		ctx.Scan.Pop()
	} else if token, err = ctx.Scan.PopValue(ctx.Value.Tag.PlaceHolder); err != nil {
		return fmt.Errorf("no %s behind it", ctx.Value.Tag.PlaceHolder)
	}
	texts := []string{fmt.Sprint(token.Value)}
	readings := f.given
	// kong decodes values of the command line into a copy
	if target.Addr().Pointer() == ctx.Value.Target.Addr().Pointer() {
		readings = f.fallback
	}
	var before reading
	if target.Kind() == reflect.Slice {
		texts, before = kong.SplitEscaped(texts[0], ctx.Value.Tag.Sep), readings[ctx.Value]
	}
	r := read(target, ctx.Value.Tag, texts)
	readings[ctx.Value] = reading{append(before.texts, r.texts...), append(before.wrong, r.wrong...)}
	return nil
}

// read sets a flag's field. An empty text leaves a field without a default unset.
func read(target reflect.Value, tag *kong.Tag, texts []string) reading {
	if target.Kind() != reflect.Slice {
		target.SetZero()
		if texts[0] == "" && !tag.HasDefault {
			return reading{texts: texts}
		}
	}
	return reading{texts, set(target, tag, texts)}
}

// A mistake is one thing that is wrong with a configuration.
type mistake struct {
	Where  string // the setting, as it is named in its place: the flag, variable, or line of the file
	Value  string
	Reason string // completes the sentence that begins with the value

	at *rules.PlaceError // in Value; nil = the whole
}

func (m *mistake) Error() string {
	if m.Value == "" {
		return m.Where + " " + m.Reason
	}
	return fmt.Sprintf("%s %q %s", m.Where, m.Value, m.Reason)
}

// Err joins the mistakes in those flags of the selected command that are not settings.
// [Flags.Load] reports the others.
func (f *Flags) Err(ctx *kong.Context) error {
	var errs []error
	for _, flag := range ctx.Selected().Flags {
		if isSetting(flag) {
			continue
		}
		for _, m := range f.reading(ctx, flag).wrong {
			errs = append(errs, &mistake{"--" + flag.Name, m.Value, m.Reason, nil})
		}
	}
	return errors.Join(errs...)
}

func isSetting(flag *kong.Flag) bool { return len(flag.Envs) > 0 }

// given reports whether a flag is on the command line.
func given(ctx *kong.Context, flag *kong.Flag) bool {
	return slices.ContainsFunc(ctx.Path, func(p *kong.Path) bool { return p.Flag == flag })
}

func (f *Flags) reading(ctx *kong.Context, flag *kong.Flag) reading {
	switch {
	case kinds[flag.Tag.Type] == nil: // text, decoded by kong itself
		return reading{texts: textsOf(flag.Target)}
	case given(ctx, flag):
		return f.given[flag.Value]
	}
	return f.fallback[flag.Value]
}

func textsOf(v reflect.Value) []string {
	if list, ok := v.Interface().([]string); ok {
		return list
	}
	return []string{fmt.Sprint(v)}
}

// didYouMean suggests one of the candidates, if one is near.
func didYouMean(s string, candidates []string) string {
	if near := nearest(strings.ToLower(s), candidates); near != "" {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}
