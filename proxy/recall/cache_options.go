package recall

import (
	"slices"
	"strings"
	"time"

	"signalbox/internal/option"
	"signalbox/memory/cache"
)

// Options is the section `cache`: answers are kept, and given again to the same request, or to
// one that asks the same in other words.
type Options struct {
	// Mode holds for routes that do not say `cache` themselves: off, exact (the same request gets
	// the same answer) or semantic (so does one whose last question asks the same in other words).
	// Default off. Reloadable.
	Mode string `yaml:"mode" words:"off exact semantic"`
	// TTL is how long an answer is kept. 1s to 720h. Default 1h. Reloadable.
	TTL option.Duration `yaml:"ttl"`
	// MinSimilarity is the cosine of two embeddings from which on their questions are compared word
	// by word, in [0,1]. The default was measured with the embedded model; another model needs
	// another number. Default 0.72. Reloadable.
	MinSimilarity float64 `yaml:"min_similarity"`
	// MaxEntries is how many questions are kept for other wordings; the one that was not asked for
	// the longest time goes first. 1 to 1000000. Default 10000. Reloadable.
	MaxEntries int `yaml:"max_entries"`
	// MaxBytes is how much memory the answers of this process take; one answer takes at most a
	// quarter of it, and at most 1MiB. 1MiB or more. Default 64MiB. Reloadable.
	MaxBytes option.Bytes `yaml:"max_bytes"`
	// Shared keeps answers in the Redis of memory.redis as well, where the replicas of this
	// configuration find them, for the same and for other wordings. Default false. Reloadable.
	Shared bool `yaml:"shared"`
	// MaxSharedBytes is how much of that Redis answers take; what ends first is dropped for more.
	// 1MiB or more. Default 256MiB. Restart needed.
	MaxSharedBytes option.Bytes `yaml:"max_shared_bytes"`
	// MaxTemperature is up to which temperature of a request its answer is kept, in [0,2]; a
	// request that names none counts as fit. Default 0.3. Reloadable.
	MaxTemperature float64 `yaml:"max_temperature"`
	// Pace is how fast a stream is given again.
	Pace PaceOptions `yaml:"pace"`
}

// PaceOptions is how fast a stream is given again.
type PaceOptions struct {
	// Speed is how many times faster than it came a stream is given again; 0 gives it at once. 0 to
	// 1000. Default 4. Reloadable.
	Speed float64 `yaml:"speed"`
	// MaxGap bounds the wait in front of a piece. At most 10s. Default 20ms. Reloadable.
	MaxGap option.Duration `yaml:"max_gap"`
	// MaxTotal bounds all waits of one answer together. At most 1m. Default 2s. Reloadable.
	MaxTotal option.Duration `yaml:"max_total"`
}

// The modes of the cache.
const (
	ModeOff      = "off"
	ModeExact    = "exact"
	ModeSemantic = "semantic"
)

// CacheModes are the modes, each with what the one before it does.
func CacheModes() []string { return []string{ModeOff, ModeExact, ModeSemantic} }

// DefaultOptions returns the options of an empty section.
func DefaultOptions() Options {
	o, p := cache.DefaultOptions(), cache.DefaultPace()
	return Options{
		Mode: ModeOff, TTL: option.Duration(o.TTL), MinSimilarity: o.MinSimilarity, MaxEntries: o.MaxEntries, MaxBytes: 64 << 20,
		MaxSharedBytes: option.Bytes(cache.DefaultRedisOptions().MaxBytes),
		MaxTemperature: cache.DefaultIdentifier().MaxTemperature,
		Pace:           PaceOptions{Speed: p.Speed, MaxGap: option.Duration(p.MaxGap), MaxTotal: option.Duration(p.MaxTotal)},
	}
}

// The bounds of the section.
const (
	minAnswerTTL   = time.Second
	maxAnswerTTL   = 720 * time.Hour
	maxQuestions   = 1_000_000
	minAnswerBytes = 1 << 20
	maxPaceSpeed   = 1000
	maxPaceGap     = 10 * time.Second
	maxPaceTotal   = time.Minute
	maxTemperature = 2
)

// Validate reports every bad option, one "field: problem" a line.
func (o Options) Validate() error {
	var p option.Problems
	if !slices.Contains(CacheModes(), o.Mode) {
		p.Addf("mode", "%q is none of %s", o.Mode, strings.Join(CacheModes(), ", "))
	}
	if ttl := time.Duration(o.TTL); ttl < minAnswerTTL || ttl > maxAnswerTTL {
		p.Addf("ttl", "%s is not between %s and 720h", o.TTL, minAnswerTTL)
	}
	option.Between(&p, "min_similarity", o.MinSimilarity, 0, 1)
	option.Between(&p, "max_entries", o.MaxEntries, 1, maxQuestions)
	if o.MaxBytes < minAnswerBytes {
		p.Addf("max_bytes", "%d is less than 1MiB", o.MaxBytes)
	}
	if o.MaxSharedBytes < minAnswerBytes {
		p.Addf("max_shared_bytes", "%d is less than 1MiB", o.MaxSharedBytes)
	}
	option.Between(&p, "max_temperature", o.MaxTemperature, 0, maxTemperature)
	o.Pace.check(&p, "pace.")
	return p.Err()
}

func (o PaceOptions) check(p *option.Problems, prefix string) {
	option.Between(p, prefix+"speed", o.Speed, 0, maxPaceSpeed)
	for _, d := range []struct {
		field    string
		d, limit time.Duration
	}{{"max_gap", time.Duration(o.MaxGap), maxPaceGap}, {"max_total", time.Duration(o.MaxTotal), maxPaceTotal}} {
		option.Between(p, prefix+d.field, d.d, 0, d.limit)
	}
}

// Pace is what a replay takes.
func (o PaceOptions) Pace() cache.Pace {
	return cache.Pace{Speed: o.Speed, MaxGap: time.Duration(o.MaxGap), MaxTotal: time.Duration(o.MaxTotal)}
}
