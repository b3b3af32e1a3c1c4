package conn

import "testing"

// A request of HTTP/1.0 is clean if its header has no Transfer-Encoding, however it comes in
// pieces; of other versions, and of what is not over, nothing is said.
func TestFramed(t *testing.T) {
	for header, clean := range map[string]bool{
		"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n":                false,
		"POST / HTTP/1.0\nTRANSFER-ENCODING:chunked\n\n":                                  false,
		"\r\n\r\nPOST / HTTP/1.0\r\ntransfer-encoding\r\n\r\n":                            false,
		"POST / HTTP/1.0\r\nX-Transfer-Encoding: chunked\r\nA: Transfer-Encoding\r\n\r\n": true,
		"POST / HTTP/1.0\r\nTransfer\rEncoding: chunked\r\nTransfer-Encodin\r\n\r\n":      true,
		"POST / HTTP/1.0\n\n": true,
		"POST / HTTP/1.0\r\n\r\nTransfer-Encoding: chunked\r\n\r\n":     true,
		"POST / HTTP/1.0\r\nContent-Length: 5\r\n":                      false,
		"POST / HTTP/1.1\r\nHost: a\r\n\r\n":                            false,
		"POST /HTTP/1.0 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n": false,
	} {
		for size := 1; size <= len(header); size++ {
			var s codedScan
			for rest := header; rest != ""; rest = rest[min(size, len(rest)):] {
				s.piece([]byte(rest[:min(size, len(rest))]))
			}
			if s.clean != clean {
				t.Errorf("%q, %d bytes at a time: %v", header, size, s.clean)
				break
			}
		}
	}
}
