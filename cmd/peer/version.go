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

// A build describes the program.
type build struct {
	// module version, which has the revision where that has no tag, and says whether files differed; or "devel"
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		b.Version = info.Main.Version
	}
	return b
}

func (b build) String() string { return "peer " + b.Version + " " + b.Go + " " + b.Platform }

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
