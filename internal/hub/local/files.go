package local

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Files returns the files of a model's folder. A link that is absolute or leads out of the folder
// is an error, so that a third-party model cannot reference other files of this machine. dir itself
// may be a link, also to a snapshot in the cache of Hugging Face's own tools, whose files are links
// to the blobs of the same model. No file stays open between calls.
func Files(dir string) fs.FS {
	if cached, ok := snapshot(dir); ok {
		return cached
	}
	return folder{dir, "."}
}

// folder is a folder that links may not leave, and the position of the files in it.
type folder struct{ root, at string }

// snapshot finds the model folder that contains a snapshot in a cache of huggingface_hub:
// MODEL/snapshots/REVISION, whose files are links into MODEL/blobs
// (huggingface.co/docs/huggingface_hub/guides/manage-cache).
func snapshot(dir string) (folder, bool) {
	revision, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return folder{}, false
	}
	snapshots := filepath.Dir(revision)
	model := filepath.Dir(snapshots)
	blobs, err := os.Lstat(filepath.Join(model, "blobs"))
	if err != nil || !blobs.IsDir() || filepath.Base(snapshots) != "snapshots" {
		return folder{}, false
	}
	return folder{model, filepath.Join("snapshots", filepath.Base(revision))}, true
}

func (f folder) path(name string) string { return filepath.Join(f.at, filepath.FromSlash(name)) }

// Open opens one file.
func (f folder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	file, err := os.OpenInRoot(f.root, f.path(name))
	if err != nil {
		return nil, err //nolint:wrapcheck // a *fs.PathError, as fs.FS asks for
	}
	return file, nil
}

// Stat describes a file without opening it, which would block for a pipe.
func (f folder) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	root, err := os.OpenRoot(f.root)
	if err != nil {
		return nil, err //nolint:wrapcheck // as in Open
	}
	defer func() { _ = root.Close() }()
	return root.Stat(f.path(name)) //nolint:wrapcheck // as in Open
}
