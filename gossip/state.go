package gossip

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// A state file begins with this line. For this peer's digest and for each replica, it has the length
// of the peer's name (a byte), the name, and the frame that would answer a get for the digest. It is
// a cache of what others have, so a damaged file is read up to the damage.
const stateMagic = "summarycache replicas 1\n"

const saveInterval = 5 * time.Minute

func (h *host) saveLoop() {
	for h.sleep(saveInterval) {
		if err := h.save(); err != nil {
			h.log.Warn("saving the replicas failed", "err", err)
		}
	}
}

// save writes a temporary file beside the state file and renames it, so that the state file is always
// complete.
func (h *host) save() error {
	var saved map[string]exchange.Answer
	h.with(func(e *exchange.Engine) { saved = e.Save() })
	f, err := os.CreateTemp(filepath.Dir(h.cfg.StateFile), filepath.Base(h.cfg.StateFile)+".*")
	if err != nil {
		return err
	}
	if err = errors.Join(writeState(f, saved), f.Close()); err == nil {
		err = os.Rename(f.Name(), h.cfg.StateFile)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

func writeState(w io.Writer, saved map[string]exchange.Answer) error {
	out := bufio.NewWriterSize(w, 256<<10)
	out.WriteString(stateMagic)
	var frame []byte
	for peer, answer := range saved {
		frame = answer.AppendTo(frame[:0])
		out.WriteByte(byte(len(peer)))
		out.WriteString(peer)
		out.Write(frame)
	}
	return out.Flush() // returns the first error of all writes
}

// restore loads the state file into the engine. A missing or damaged file is not an error; an
// unreadable one is.
func (h *host) restore() error {
	if h.cfg.StateFile == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(h.cfg.StateFile)); err != nil {
		return err
	}
	f, err := os.Open(h.cfg.StateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is not a regular file", h.cfg.StateFile))
	}
	loaded, err := h.readState(bufio.NewReaderSize(f, 256<<10))
	if err != nil {
		h.log.Warn("the state file is damaged; what could be read is used", "file", h.cfg.StateFile, "err", err)
	}
	if loaded > 0 {
		h.log.Info("loaded the replicas from before the restart", "replicas", loaded)
	}
	return nil
}

// readState reads replicas until the end or the first damage. A replica that cannot be used, such as
// one under another seed, is skipped.
func (h *host) readState(in *bufio.Reader) (loaded int, err error) {
	magic := make([]byte, len(stateMagic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != stateMagic {
		return 0, fmt.Errorf("it does not begin %q", stateMagic)
	}
	for {
		length, err := in.ReadByte()
		if err == io.EOF {
			return loaded, nil
		}
		name := make([]byte, length)
		if _, err := io.ReadFull(in, name); err != nil {
			return loaded, wire.Unexpected(err)
		}
		if !exchange.ValidName(string(name)) {
			return loaded, fmt.Errorf("name %q", name)
		}
		var header [exchange.FrameHeader]byte
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return loaded, wire.Unexpected(err)
		}
		t, size, err := exchange.DecodeFrameHeader(header, h.cfg.Limits.DigestBytes+exchange.MaxAdvert)
		if err != nil {
			return loaded, err
		}
		c := incoming{of: &h.digests}
		if err := c.room(size); err != nil { // so much that the rest may not fit either
			return loaded, err
		}
		payload, err := io.ReadAll(io.LimitReader(in, int64(size)))
		if err != nil || len(payload) < size {
			return loaded, errors.Join(err, io.ErrUnexpectedEOF)
		}
		f := exchange.Fetch{Get: exchange.Get{Origin: exchange.IDOf(string(name))}}
		r := exchange.DecodeAnswer(f, t, payload, h.digestLimits, h.digestSeeds()...)
		if err := h.digests.add(nil, r.Filter, c.bytes); err != nil {
			return loaded, err
		}
		switch {
		case string(name) == h.cfg.Name:
			h.former = r.Filter // nil if it is damaged
		case h.engine.Restore(time.Now(), string(name), r):
			loaded++
		}
	}
}
