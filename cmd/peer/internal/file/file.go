// Package file reads files whose names an operator gave, and that may be pipes, endless or long.
package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// pipeWait is how long a pipe that a file's name leads to may send nothing.
const pipeWait = 10 * time.Second

// Text reads a file like [Read], without the mark of the byte order that editors put before UTF-8. UTF-16, which some
// shells write, is an error.
func Text(path string, most int64) ([]byte, error) {
	data, err := Read(path, most)
	if err == nil && (bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff"))) {
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("is UTF-16: save it as UTF-8")}
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), err
}

// Read reads a file of at most so many bytes. Of a pipe it waits for its writer for a while; one without a writer is an
// error.
func Read(path string, most int64) ([]byte, error) {
	fail := func(err error) error { return &os.PathError{Op: "read", Path: path, Err: err} }
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // otherwise opening a pipe waits for its writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	f.SetReadDeadline(time.Now().Add(pipeWait)) // which files do not have
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	info, failed := f.Stat()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fail(fmt.Errorf("the pipe's writer sends nothing for %v", pipeWait))
	case err == nil && int64(len(data)) > most:
		err = fail(fmt.Errorf("holds more than %d bytes", most))
	case err == nil && len(data) == 0 && failed == nil && info.Mode()&os.ModeNamedPipe != 0:
		err = fail(errors.New("nobody writes into this pipe"))
	}
	return data, err
}
