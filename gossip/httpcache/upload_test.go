package httpcache

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

// Attempts to send a body are ended at random, some while they read. The next one gets the whole body
// from its beginning, or there is none since the body is too long.
func TestUploadAgain(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 0))
		size := []int{0, 1, 3000, keptOfUpload - 1, keptOfUpload, keptOfUpload + 1, 3 * keptOfUpload}[rng.IntN(7)]
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		in, out := io.Pipe()
		go func() {
			for rest := want; len(rest) > 0; {
				n := min(len(rest), 1+rng.IntN(20000))
				if _, err := out.Write(rest[:n]); err != nil {
					return
				}
				rest = rest[n:]
			}
			out.Close()
		}()
		attempts := rand.New(rand.NewPCG(seed, 1))
		u := &upload{body: in}
		body := io.ReadCloser(u)
		for range 5 {
			old := body
			part := make([]byte, 1+attempts.IntN(size+1))
			n, err := io.ReadFull(body, part)
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF || !bytes.Equal(part[:n], want[:n]) {
				t.Fatalf("seed %d: read %d of %d bytes, equal %v, error %v", seed, n, size, bytes.Equal(part[:n], want[:n]), err)
			}
			reading := make(chan struct{})
			go func() {
				old.Read(make([]byte, 100)) // as a transport may that has not noticed
				close(reading)
			}()
			next, err := u.again()
			if err != nil {
				if size <= keptOfUpload {
					t.Fatalf("seed %d: again() of %d bytes = %v", seed, size, err)
				}
				<-reading
				in.Close()
				body = nil
				break
			}
			body = next
			<-reading
			if n, err := old.Read(make([]byte, 1)); err != errUploadGone {
				t.Fatalf("seed %d: an ended attempt read %d bytes, error %v", seed, n, err)
			}
		}
		if body == nil {
			continue
		}
		if err := iotest.TestReader(io.MultiReader(body), want); err != nil {
			t.Fatalf("seed %d: %d bytes: %v", seed, size, err)
		}
	}
}
