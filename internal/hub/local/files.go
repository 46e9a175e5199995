package local

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Files returns the files of a model's folder. A link that leads out of the folder is an error, here as for Verify: a model that somebody
// else made must not name whatever it likes on this machine. dir itself may be a link. Nothing is kept open in between.
func Files(dir string) fs.FS { return folder(dir) }

type folder string

// Open opens one file.
func (f folder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	file, err := os.OpenInRoot(string(f), filepath.FromSlash(name))
	if err != nil {
		return nil, err //nolint:wrapcheck // a *fs.PathError, as fs.FS asks for
	}
	return file, nil
}

// Stat looks at a file without opening it, which would wait where it is a pipe.
func (f folder) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return nil, err //nolint:wrapcheck // as in Open
	}
	defer func() { _ = root.Close() }()
	return root.Stat(filepath.FromSlash(name)) //nolint:wrapcheck // as in Open
}
