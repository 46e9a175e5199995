package bundle

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-json-experiment/json"
)

// pulled is the content of .signalbox.json, which `signalbox models pull` writes next to the
// downloaded files. It has further members.
type pulled struct {
	Commit  string       `json:"commit"`
	License string       `json:"license"`
	Files   []pulledFile `json:"files"`
}

// pulledFile has the fields of File.
type pulledFile struct {
	Name   string `json:"path"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// readRecord reads .signalbox.json; without one it returns nil.
func readRecord(files fs.FS) (*pulled, error) {
	data, err := readBounded(files, pullRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{File: pullRecord, Err: err}
	}
	p := new(pulled)
	if err := json.Unmarshal(data, p); err != nil {
		return nil, &Error{File: pullRecord, Err: err}
	}
	c := checker{file: pullRecord}
	for i, f := range p.Files {
		if f.Bytes == 0 { // a file without content is no problem of a record
			f.Bytes = 1
		}
		c.sum(fmt.Sprintf("files[%d]", i), File(f))
	}
	return p, errors.Join(c.errs...)
}

// sums returns the files by name. p may be nil.
func (p *pulled) sums() map[string]File {
	if p == nil {
		return nil
	}
	sums := make(map[string]File, len(p.Files))
	for _, f := range p.Files {
		sums[f.Name] = File(f)
	}
	return sums
}
