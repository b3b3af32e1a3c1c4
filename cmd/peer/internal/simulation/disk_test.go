package simulation

import (
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore/disktest"
)

// storeDir is the directory of the store on each peer's disk.
const storeDir = "/store"

// A disk is the disk of a peer during the life of one node: the next node gets a copy.
type disk struct {
	*disktest.Disk
	open   atomic.Int64 // files
	behind atomic.Bool  // it is the simulation that reads and writes: nothing goes wrong

	mu  sync.Mutex
	rng *rand.Rand
}

// insert sets the disk for the peer's next node.
func (p *peer) insert(content *disktest.Disk, life int) {
	d := &disk{Disk: content, rng: rand.New(rand.NewPCG(p.w.s.Seed, uint64(p.index<<16+life)))}
	content.Inject(func(op disktest.Op, name string, b []byte) (int, error) { return p.spoil(d, op, name, b) })
	p.mu.Lock()
	p.disk = d
	d.Limit(p.room)
	p.mu.Unlock()
}

func (p *peer) setDisk(f fault) {
	p.mu.Lock()
	p.wrong = f
	p.mu.Unlock()
}

func (p *peer) diskFault() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong
}

// spoil decides which operations fail. The disk calls it with its lock held.
func (p *peer) spoil(d *disk, op disktest.Op, name string, b []byte) (int, error) {
	f := p.diskFault()
	if f.Kind == "" || d.behind.Load() {
		return 0, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	happens := d.rng.Float64() < f.P
	var n int
	switch {
	case f.Kind == "disk-full" && (op == disktest.Write || op == disktest.Create):
		p.w.sometimes("fault " + f.Kind)
		return d.rng.IntN(len(b) + 1), syscall.ENOSPC
	case !happens:
		return 0, nil
	case f.Kind == "disk-any", f.Kind == "disk-read" && op == disktest.Read, f.Kind == "disk-write" && op == disktest.Write:
		if len(b) > 0 {
			n = d.rng.IntN(len(b))
		}
		p.w.sometimes("fault " + f.Kind)
		return n, syscall.EIO
	case f.Kind == "disk-flip" && op == disktest.Read && len(b) > 0:
		b[d.rng.IntN(len(b))] ^= 1 << d.rng.IntN(8)
		p.w.sometimes("fault " + f.Kind)
		if strings.HasPrefix(name, storeDir+"/objects/") {
			p.flips.Add(1)
		}
	}
	return 0, nil
}

// damage changes files in the store of a running node.
func (p *peer) damage(f fault) bool {
	p.mu.Lock()
	d := p.disk
	p.mu.Unlock()
	if p.now() == nil {
		return false
	}
	d.behind.Store(true)
	defer d.behind.Store(false)
	if f.Kind == "remove" {
		d.RemoveAll(storeDir + "/objects")
		return true
	}
	rng := rand.New(rand.NewPCG(p.w.s.Seed, uint64(f.At)))
	files := d.Names(storeDir + "/objects")
	for range (len(files) + 2) / 3 {
		file, err := d.Edit(files[rng.IntN(len(files))])
		if err != nil {
			continue
		}
		size, _ := file.Size()
		at := rng.Int64N(max(size, 1))
		if f.Kind == "truncate" {
			file.Truncate(at)
		} else {
			var b [1]byte
			file.ReadAt(b[:], at)
			b[0] ^= 1 << rng.IntN(8)
			file.WriteAt(b[:], at)
		}
		file.Close()
	}
	return len(files) > 0
}

// writeBack writes unwritten data to the disk every few seconds, as an operating system does.
func (p *peer) writeBack() {
	for {
		p.w.wait(5000)
		select {
		case <-p.w.over:
			return
		default:
		}
		p.mu.Lock()
		d := p.disk
		p.mu.Unlock()
		d.Sync()
	}
}

// The disk counts the files that are open.

func (d *disk) Open(name string) (diskstore.File, error)   { return d.opened(d.Disk.Open(name)) }
func (d *disk) Edit(name string) (diskstore.File, error)   { return d.opened(d.Disk.Edit(name)) }
func (d *disk) Create(name string) (diskstore.File, error) { return d.opened(d.Disk.Create(name)) }

func (d *disk) Lock(name string) (io.Closer, error) {
	l, err := d.Disk.Lock(name)
	if err == nil {
		d.open.Add(1)
		l = &closing{l, d}
	}
	return l, err
}

type closing struct {
	io.Closer
	d *disk
}

func (c *closing) Close() error {
	c.d.open.Add(-1)
	return c.Closer.Close()
}

type openFile struct {
	diskstore.File
	d *disk
}

func (d *disk) opened(f diskstore.File, err error) (diskstore.File, error) {
	if err != nil {
		return nil, err
	}
	d.open.Add(1)
	return &openFile{f, d}, nil
}

func (f *openFile) Close() error {
	f.d.open.Add(-1)
	return f.File.Close()
}
