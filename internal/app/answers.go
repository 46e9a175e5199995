package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"signalbox/internal/config"
	"signalbox/proxy"
	"signalbox/proxy/decisionlog"
)

// remember gives a state its answers: those of the state before, unless the room for them changed.
func (a *App) remember(cfg *config.Config, st *proxy.State, id *decisionlog.Identity) (*proxy.Answers, error) {
	answers := a.answers
	if answers == nil || !answers.Fits(cfg.Cache) {
		var err error
		if answers, err = proxy.NewAnswers(cfg.Cache, nil, a.answers); err != nil {
			return nil, err
		}
	}
	return answers, st.Cache(cfg.Cache, answers, decides(id, a.opts.Version))
}

// decides stands for everything that decides requests and shapes their answers, the same in every process: the content of the
// file, the models behind signals and the version of this program.
func decides(id *decisionlog.Identity, version string) string {
	b := fmt.Appendf(nil, "%q %q\n", version, id.Config)
	for _, k := range slices.Sorted(maps.Keys(id.Definitions)) {
		b = fmt.Appendf(b, "%d %q\n", k, id.Definitions[k])
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
