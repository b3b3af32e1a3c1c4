package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/file"
	"github.com/summarycache/summarycache/cmd/peer/internal/table"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
)

const maxDigest = 64 << 20 // bytes of a file that may be a digest

type inspectCommand struct {
	What   string `arg:"" name:"file|peer" help:"A file with a digest or a delta; the directory of a store; the admin address, HOST:PORT, of a peer; or the name of a peer that the one at --admin knows. A name with a slash, or of a regular file, is a file."`
	Fields bool   `name:"fields"`
	Save   string `name:"save"`
	target `embed:""`
}

func (c *inspectCommand) Help() string {
	return `Decodes a digest (whole or in pieces) or delta (digest/FORMAT.md). An admin address stands for the digest that this peer publishes, a name for the copy that the peer at --admin holds of that peer's digest. Of a store, in use or not, it lists the objects: when they were written, bytes, file and key.`
}

// inspected is what inspect prints as JSON.
type inspected struct {
	Source            string          `json:"source"`
	Kind              string          `json:"kind"`
	Bytes             int             `json:"bytes"`
	Bits              uint64          `json:"bits"`
	Hashes            int             `json:"hashes"`
	Keys              uint64          `json:"keys"`
	Ones              uint64          `json:"ones"`
	Version           digest.Version  `json:"version"`
	Base              *digest.Version `json:"base,omitempty"` // of a delta
	BitsPerKey        float64         `json:"bits_per_key"`   // on the wire
	FalsePositiveRate float64         `json:"false_positive_rate,omitempty"`
	MemoryBytes       int             `json:"memory_bytes,omitempty"`
	Fields            []string        `json:"fields,omitempty"`
}

func (c *inspectCommand) Run(e *environment) error {
	if st, err := os.Stat(filepath.Join(c.What, "objects")); err == nil && st.IsDir() {
		return c.store(e)
	}
	b, err := c.bytes(e)
	if err != nil {
		return err
	}
	if c.Save != "" {
		if err := os.WriteFile(c.Save, b, 0o644); err != nil {
			return fmt.Errorf("--save: %w", err)
		}
	}
	out, broken := c.describe(b)
	if broken != nil && !c.Fields {
		return fmt.Errorf("%s is not a valid digest: %w (--fields shows its valid part)", c.What, broken)
	}
	return errors.Join(broken, show(e, c.JSON, out, func(out inspected) string {
		text := strings.Join(append(out.Fields, ""), "\n")
		if broken == nil {
			text = out.table().Text("") + text
		}
		return text
	}))
}

// store lists the objects of a store, one per line.
func (c *inspectCommand) store(e *environment) error {
	var all []diskstore.Held
	var errs []error
	for h, err := range diskstore.Inspect(c.What) {
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", h.File, err))
		case c.JSON:
			all = append(all, h)
		default:
			fmt.Fprintf(e.stdout, "%s %10d %s %q\n", h.Written.UTC().Format(time.RFC3339), h.Bytes, h.File, h.Key)
		}
	}
	if c.JSON {
		errs = append(errs, show(e, true, all, nil))
	}
	return errors.Join(errs...)
}

// bytes returns the bytes to inspect. An argument with a slash, or the name of a regular file, is a
// file; any other is a peer.
func (c *inspectCommand) bytes(e *environment) ([]byte, error) {
	st, err := os.Stat(c.What)
	path := strings.ContainsAny(c.What, "/\\")
	if path && err == nil && st.IsDir() {
		return nil, fmt.Errorf("%s is a directory, but not that of a store", c.What)
	}
	if path || err == nil && st.Mode().IsRegular() {
		return file.Read(c.What, maxDigest)
	}
	if _, _, err := net.SplitHostPort(c.What); err == nil {
		return admin.Client(c.What).Digest(e.ctx, "")
	}
	b, err := admin.Client(c.Admin).Digest(e.ctx, c.What)
	if err != nil {
		return nil, fmt.Errorf("%s is not a file; as a peer: %w", c.What, err)
	}
	return b, nil
}

func (c *inspectCommand) describe(b []byte) (out inspected, err error) {
	if c.Fields {
		var dump bytes.Buffer
		digest.Dump(&dump, b)
		out.Fields = strings.Split(strings.TrimRight(dump.String(), "\n"), "\n")
	}
	lim := digest.Limits{Profile: digest.AnyProfile}
	h, err := digest.Peek(b, lim)
	if err != nil {
		return out, err
	}
	out.Source, out.Kind, out.Bytes, out.Bits, out.Hashes = c.What, h.Kind.String(), len(b), h.Geometry.Bits, h.Geometry.Hashes
	out.Keys, out.Ones, out.Version = h.Keys, h.Ones, h.Version
	if h.Keys > 0 {
		out.BitsPerKey = 8 * float64(len(b)) / float64(h.Keys)
	}
	switch h.Kind {
	case digest.KindDelta:
		out.Base = &h.Base
	case digest.KindFilter, digest.KindPieces:
		f, err := digest.DecodeFilter(b, lim)
		if err != nil {
			return out, err
		}
		out.FalsePositiveRate, out.MemoryBytes = f.FalsePositiveRate(), f.MemoryBytes()
	}
	return out, nil
}

func (o *inspected) table() *table.Table {
	t := table.New("FIELD", "VALUE")
	t.Row("kind", o.Kind)
	t.Row("length", fmt.Sprintf("%s, %.2f bits an object", table.Bytes(o.Bytes), o.BitsPerKey))
	t.Row("geometry", shape(o.Bits, o.Hashes))
	t.Row("objects", table.Count(o.Keys))
	t.Row("ones", table.Count(o.Ones))
	t.Row("version", fmt.Sprintf("%d.%d, state %016x", o.Version.Epoch, o.Version.Sequence, o.Version.State))
	if o.Base != nil {
		t.Row("base", fmt.Sprintf("%d.%d, state %016x", o.Base.Epoch, o.Base.Sequence, o.Base.State))
	}
	if o.MemoryBytes > 0 {
		t.Row("false positives", fmt.Sprintf("%.3g %%", 100*o.FalsePositiveRate))
		t.Row("in memory", table.Bytes(o.MemoryBytes))
	}
	return t
}
