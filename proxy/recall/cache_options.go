package recall

import (
	"slices"
	"strings"
	"time"

	"signalbox/internal/option"
	"signalbox/memory/cache"
)

// Options is the section `cache`: responses are stored and returned for the same request, or for
// one that asks the same question in other words.
type Options struct {
	// Mode selects caching for routes that set no `cache` of their own. off disables it; exact
	// returns a cached response for the same request; semantic also does so for a request whose
	// last question asks the same in other words. Default off. Reloadable.
	Mode string `yaml:"mode" words:"off exact semantic"`
	// TTL is how long a response is kept. 1s to 720h. Default 1h. Reloadable.
	TTL option.Duration `yaml:"ttl"`
	// MinSimilarity is the cosine similarity of two question embeddings from which the questions
	// are compared word by word, in [0,1]. The default was measured with the embedded model;
	// another model needs a different value. Default 0.72. Reloadable.
	MinSimilarity float64 `yaml:"min_similarity"`
	// MaxEntries is the maximum number of questions kept for matching other wordings. The least
	// recently asked one is evicted first. 1 to 1000000. Default 10000. Reloadable.
	MaxEntries int `yaml:"max_entries"`
	// MaxBytes limits the memory for cached responses in this process. A single response may take
	// at most a quarter of it, and at most 1MiB. At least 1MiB. Default 64MiB. Reloadable.
	MaxBytes option.Bytes `yaml:"max_bytes"`
	// Shared also stores responses in the Redis of memory.redis, where replicas with the same
	// configuration find them, both for the same request and for other wordings. Default false.
	// Reloadable.
	Shared bool `yaml:"shared"`
	// MaxSharedBytes limits the space that cached responses take in that Redis. To make room, the
	// responses that expire first are evicted. At least 1MiB. Default 256MiB. Restart needed.
	MaxSharedBytes option.Bytes `yaml:"max_shared_bytes"`
	// MaxTemperature is the highest temperature of a request whose response is cached, in [0,2]. A
	// request that sets no temperature qualifies. Default 0.3. Reloadable.
	MaxTemperature float64 `yaml:"max_temperature"`
	// Pace configures how fast a cached stream is replayed.
	Pace PaceOptions `yaml:"pace"`
}

// PaceOptions configures how fast a cached stream is replayed.
type PaceOptions struct {
	// Speed is the replay speed of a stream as a multiple of its original speed. 0 replays it at
	// once. 0 to 1000. Default 4. Reloadable.
	Speed float64 `yaml:"speed"`
	// MaxGap limits the delay before each chunk. At most 10s. Default 20ms. Reloadable.
	MaxGap option.Duration `yaml:"max_gap"`
	// MaxTotal limits the total delay of one response. At most 1m. Default 2s. Reloadable.
	MaxTotal option.Duration `yaml:"max_total"`
}

// The modes of the cache.
const (
	ModeOff      = "off"
	ModeExact    = "exact"
	ModeSemantic = "semantic"
)

// CacheModes returns the modes; each includes the previous one.
func CacheModes() []string { return []string{ModeOff, ModeExact, ModeSemantic} }

// DefaultOptions returns the defaults, those of an empty section.
func DefaultOptions() Options {
	o, p := cache.DefaultOptions(), cache.DefaultPace()
	return Options{
		Mode: ModeOff, TTL: option.Duration(o.TTL), MinSimilarity: o.MinSimilarity, MaxEntries: o.MaxEntries, MaxBytes: 64 << 20,
		MaxSharedBytes: option.Bytes(cache.DefaultRedisOptions().MaxBytes),
		MaxTemperature: cache.DefaultIdentifier().MaxTemperature,
		Pace:           PaceOptions{Speed: p.Speed, MaxGap: option.Duration(p.MaxGap), MaxTotal: option.Duration(p.MaxTotal)},
	}
}

// Limits of the section.
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

// Validate reports every bad option, one "field: problem" per line.
func (o Options) Validate() error {
	var p option.Problems
	if !slices.Contains(CacheModes(), o.Mode) {
		p.Addf("mode", "%q is not one of %s", o.Mode, strings.Join(CacheModes(), ", "))
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

// Pace converts the options for a replay.
func (o PaceOptions) Pace() cache.Pace {
	return cache.Pace{Speed: o.Speed, MaxGap: time.Duration(o.MaxGap), MaxTotal: time.Duration(o.MaxTotal)}
}
