package lengths

import "signalbox/internal/option"

// Options is the section `server.auto_max_tokens`: how `max_tokens: auto` finds its limit.
type Options struct {
	// Floor is the least automatic limit, in tokens. At least 1. Default 256. Reloadable, as
	// everything here.
	Floor int `yaml:"floor"`
	// Headroom is what the 99th percentile of the answers seen is multiplied with. 1 to 100.
	// Default 1.5.
	Headroom float64 `yaml:"headroom"`
	// MinAnswers is how many answers of a kind must have been seen before they decide; with fewer,
	// cold_start does. 1 to 250. Default 100: of fewer, the 99th percentile is just the longest.
	MinAnswers int `yaml:"min_answers"`
	// ColdStart holds the limits that hold until enough answers were seen. Reasoning counts towards
	// the limit, so they grow with the effort.
	ColdStart ColdStart `yaml:"cold_start"`
}

// ColdStart are automatic limits by reasoning effort, in tokens.
type ColdStart struct {
	// None is the limit without reasoning. At least 1. Default 2048.
	None int `yaml:"none"`
	// Low is the limit at low effort. At least 1. Default 4096.
	Low int `yaml:"low"`
	// Medium is the limit at medium effort, and for models with a reasoning dialect that nobody
	// tells an effort. At least 1. Default 8192.
	Medium int `yaml:"medium"`
	// High is the limit at high effort. At least 1. Default 16384.
	High int `yaml:"high"`
}

// DefaultOptions returns the options of an empty section.
func DefaultOptions() Options {
	return Options{
		Floor: 256, Headroom: 1.5, MinAnswers: 100,
		ColdStart: ColdStart{None: 2048, Low: 4096, Medium: 8192, High: 16384},
	}
}

// maxMinAnswers is below half of halfLife, to which the weight of a sketch falls when it is first
// halved.
const maxMinAnswers = 250

// Check reports every bad option to p; at is the path of the section.
func (o *Options) Check(p *option.Problems, at string) {
	for _, n := range []struct {
		field string
		n     int
	}{
		{"floor", o.Floor},
		{"cold_start.none", o.ColdStart.None},
		{"cold_start.low", o.ColdStart.Low},
		{"cold_start.medium", o.ColdStart.Medium},
		{"cold_start.high", o.ColdStart.High},
	} {
		option.Between(p, at+"."+n.field, n.n, 1, longestAnswer)
	}
	option.Between(p, at+".headroom", o.Headroom, 1, 100)
	option.Between(p, at+".min_answers", o.MinAnswers, 1, maxMinAnswers)
}
