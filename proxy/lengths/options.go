package lengths

import "signalbox/internal/option"

// Options is the section `server.auto_max_tokens`: how `max_tokens: auto` computes its limit.
type Options struct {
	// Floor is the lowest automatic limit, in tokens. At least 1. Default 256. Reloadable, as is
	// everything in this section.
	Floor int `yaml:"floor"`
	// Headroom is the factor by which the 99th percentile of the observed response lengths is
	// multiplied to get the limit. 1 to 100. Default 1.5.
	Headroom float64 `yaml:"headroom"`
	// MinAnswers is the number of observed responses of a kind from which their lengths set the
	// limit. With fewer, the limits in cold_start apply. 1 to 250. Default 100, since with fewer
	// the 99th percentile is simply the longest response.
	MinAnswers int `yaml:"min_answers"`
	// ColdStart sets the limits that apply until min_answers responses were observed. They increase
	// with the reasoning effort, because reasoning tokens count towards the limit.
	ColdStart ColdStart `yaml:"cold_start"`
}

// ColdStart holds the automatic limits by reasoning effort, in tokens.
type ColdStart struct {
	// None is the limit without reasoning, in tokens. At least 1. Default 2048.
	None int `yaml:"none"`
	// Low is the limit at low effort, in tokens. At least 1. Default 4096.
	Low int `yaml:"low"`
	// Medium is the limit at medium effort, in tokens. It also applies to models with a reasoning
	// dialect whose request sets no effort. At least 1. Default 8192.
	Medium int `yaml:"medium"`
	// High is the limit at high effort, in tokens. At least 1. Default 16384.
	High int `yaml:"high"`
}

// DefaultOptions returns the defaults, those of an empty section.
func DefaultOptions() Options {
	return Options{
		Floor: 256, Headroom: 1.5, MinAnswers: 100,
		ColdStart: ColdStart{None: 2048, Low: 4096, Medium: 8192, High: 16384},
	}
}

// maxMinAnswers is below half of halfLife, the weight of a sketch after its first halving.
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
