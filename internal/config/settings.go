package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// Settings are what flags and environment say about a run, before any file is read. A flag wins
// over its environment variable SIGNALBOX_NAME, which wins over the file.
type Settings struct {
	File        string // --config or SIGNALBOX_CONFIG, else the first signalbox.yaml found
	Listen      string // --listen or SIGNALBOX_LISTEN; overrides server.listen
	AdminListen string // --admin-listen or SIGNALBOX_ADMIN_LISTEN; overrides server.admin_listen
	Library     string // SIGNALBOX_ONNXRUNTIME: path of ONNX Runtime's shared library
	CacheDir    string // the user's cache directory; empty when there is none
}

// ErrNoFile reports that no configuration file was named and none was found.
var ErrNoFile = errors.New("no configuration file: pass one, set SIGNALBOX_CONFIG, or create signalbox.yaml in this directory; `signalbox init` writes one")

// ReadSettings merges flags and environment. The file itself never passes through viper, which
// folds case and splits keys on dots.
func ReadSettings(flags *pflag.FlagSet) (Settings, error) {
	v := viper.New()
	v.SetEnvPrefix("signalbox")
	for _, name := range []string{"config", "listen", "admin_listen", "onnxruntime"} {
		if err := v.BindEnv(name); err != nil {
			return Settings{}, fmt.Errorf("bind environment: %w", err)
		}
	}
	for key, flag := range map[string]string{"config": "config", "listen": "listen", "admin_listen": "admin-listen"} {
		if f := flags.Lookup(flag); f != nil {
			if err := v.BindPFlag(key, f); err != nil {
				return Settings{}, fmt.Errorf("bind flag --%s: %w", flag, err)
			}
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = "" // no home, as in many containers: nothing is cached
	}
	return Settings{
		CacheDir: cache, File: v.GetString("config"), Listen: v.GetString("listen"),
		AdminListen: v.GetString("admin_listen"), Library: v.GetString("onnxruntime"),
	}, nil
}

// Discover returns the first signalbox.yaml in the working directory, the user's configuration
// directory and /etc/signalbox, or ErrNoFile. A file that cannot be read is found too: whoever
// reads it says why not.
func Discover() (string, error) {
	dirs := []string{"."}
	if dir, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, ".config", "signalbox"))
	}
	for _, dir := range append(dirs, "/etc/signalbox") {
		file := filepath.Join(dir, "signalbox.yaml")
		if s, err := os.Stat(file); err == nil && !s.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return file, nil
		}
	}
	return "", ErrNoFile
}
