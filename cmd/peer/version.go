package main

import (
	"encoding/json"
	"io"
	"runtime"
	"runtime/debug"
)

type versionCommand struct {
	JSON bool `name:"json"`
}

// A build describes the program and its source.
type build struct {
	Version  string `json:"version"`  // module version, or "devel"
	Revision string `json:"revision"` // of the source; "" = unknown
	Modified bool   `json:"modified"` // the source differed from the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) String() string {
	s := "peer " + b.Version
	if b.Revision != "" {
		s += " (" + b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			s += ", modified"
		}
		s += ")"
	}
	return s + " " + b.Go + " " + b.Platform
}

func (c *versionCommand) Run(e *environment) error {
	return show(e, c.JSON, thisBuild(), func(b build) string { return b.String() + "\n" })
}

// show prints v as JSON or as text.
func show[T any](e *environment, asJSON bool, v T, text func(T) string) error {
	if !asJSON {
		_, err := io.WriteString(e.stdout, text(v))
		return err
	}
	out := json.NewEncoder(e.stdout)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(v)
}
