package diskstore

import (
	"io"
	"os"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// A hot body of at least minSendable bytes may have a second copy, in a file that exists in memory
// only. The kernel sends that file's pages as they are. Writing the body from the memory of this
// process would copy it to new pages for each client, which takes a third of the whole answer at
// 64 KiB, and twice as long again where those pages are in no cache of the processor.
const (
	minSendable   = 32 << 10 // below this a copy costs no more than the second system call
	mostSendable  = 64       // such files, for the most requested of the long bodies
	sendableAfter = 64       // hits of long bodies, of all objects, for each file that is made
)

// useSendable gives v, opened for a client, the file that the kernel can send its body from, if
// there is one. It seldom makes one, so that bodies get one that are often served. A file lasts for
// as long as the object is hot. No file makes room for another, and they are few: where many
// objects are equally hot, making files by turns, or giving them the memory of other bodies, costs
// more than they save.
func (v *View) useSendable(a bodies.Access) {
	h, o := v.store.hot, v.obj
	if a != bodies.Serve || len(v.hot.body) < minSendable || h == nil {
		return
	}
	if f := v.hot.sent; f != nil {
		if f.acquire() {
			v.f = f
		}
		return
	}
	if h.unsent.Add(1)%sendableAfter != 0 {
		return
	}
	if now, hot := h.get(o); !hot || now.sent != nil {
		return
	}
	if h.sendables.Add(1) > mostSendable {
		h.sendables.Add(-1)
		return
	}
	m, err := memoryFile(v.hot.body)
	if err != nil { // there are no descriptors left, or the system has no such files
		h.sendables.Add(-1)
		return
	}
	with := *v.hot
	with.sent = newOpenFile(systemFile{m})
	h.set(o, &with)
}

// A sendable is a part of a body in memory that the kernel can send from a file.
type sendable struct {
	bodies.Memory
	f   *os.File
	end int64 // where the part ends in f
}

// Span implements conn.Spans: it returns what is left, as a part of the file.
func (m *sendable) Span() (f *os.File, off, n int64) {
	if m.f == nil {
		return nil, 0, 0
	}
	n = int64(len(m.Rest))
	return m.f, m.end - n, n
}

// Distrust says that the kernel could not send the file.
func (m *sendable) Distrust() { m.f = nil }

// Next returns what is left, or io.EOF.
func (m *sendable) Next() ([]byte, error) {
	if len(m.Rest) == 0 {
		return nil, io.EOF
	}
	return m.Rest, nil
}

// Advance skips n bytes.
func (m *sendable) Advance(n int) { m.Rest = m.Rest[n:] }

// Park does nothing: the body stays in memory anyway.
func (m *sendable) Park() {}
