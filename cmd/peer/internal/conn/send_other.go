//go:build !linux

package conn

import "io"

// sendBlocks writes what is to be sent of the header, and after it the body.
func (c *Conn) sendBlocks(body Blocks) (done int64, err error) {
	defer body.Park()
	if err := c.writeHead(); err != nil {
		return 0, err
	}
	for { // each round sends at least a byte, or is the last
		b, err := body.Next()
		if err == io.EOF {
			return done, nil
		} else if err != nil {
			return done, err
		}
		n, err := c.write(b)
		body.Advance(n)
		done += int64(n)
		if err != nil {
			return done, err
		}
	}
}

// unsent returns how many bytes the other end has not confirmed: this system does not say, so no connection lingers.
func (c *Conn) unsent() int { return 0 }
