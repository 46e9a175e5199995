package hub

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxToken limits the size of the token file; tokens of the hub have 37 characters.
const maxToken = 4096

// FindToken returns the access token from the environment, or "" if there is none. It uses the
// sources of the hub's own tools
// (https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables): HF_TOKEN,
// HUGGING_FACE_HUB_TOKEN, the file HF_TOKEN_PATH, the file "token" in HF_HOME, by default
// $XDG_CACHE_HOME/huggingface or ~/.cache/huggingface. HF_HUB_DISABLE_IMPLICIT_TOKEN=1 skips the
// files.
func FindToken(env func(string) (string, bool)) (string, error) {
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if v, _ := env(name); strings.TrimSpace(v) != "" {
			return checkToken(v, name)
		}
	}
	if v, _ := env("HF_HUB_DISABLE_IMPLICIT_TOKEN"); isTrue(v) {
		return "", nil
	}
	file := tokenFile(env)
	if file == "" {
		return "", nil
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	return checkToken(string(data), file)
}

func tokenFile(env func(string) (string, bool)) string {
	if v, _ := env("HF_TOKEN_PATH"); v != "" {
		return v
	}
	if v, _ := env("HF_HOME"); v != "" {
		return filepath.Join(v, "token")
	}
	if v, _ := env("XDG_CACHE_HOME"); v != "" {
		return filepath.Join(v, "huggingface", "token")
	}
	if v, _ := env("HOME"); v != "" {
		return filepath.Join(v, ".cache", "huggingface", "token")
	}
	return ""
}

// checkToken trims a token and rejects one that a header cannot carry. The message never contains
// it.
func checkToken(s, from string) (string, error) {
	s = strings.TrimSpace(s)
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("the token in %s has a character that no token has", from)
	}
	return s, nil
}

func isTrue(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}
