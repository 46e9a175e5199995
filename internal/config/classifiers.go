package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"signalbox/internal/judge"
	"signalbox/internal/option"
	"signalbox/internal/signal"
)

// OwnClassifier is a classifier of your own: trained by `signalbox fit`, or a model on another
// server. It reads the last user message; rules refer to it as `classifier: {name, label,
// min_score}`.
type OwnClassifier struct {
	// Name is the name by which rules and requests refer to the classifier. Required; must not be
	// the name of a signal.
	Name string `yaml:"name"`
	// Model is the folder in models_dir that `signalbox fit` wrote. Default: the name of the
	// classifier. Reloadable, also when the folder is written again.
	Model string `yaml:"model"`
	// Threshold is the probability from which a label counts if a rule sets no min_score, in (0,1].
	// It has no effect on mutually exclusive labels, of which the most probable one counts.
	// Default: for a trained classifier, the threshold for the false positive rate it was trained
	// for; for a model on another server 0.5. Reloadable.
	Threshold float64 `yaml:"threshold"`
	// HTTP is the server that is called in place of a trained classifier.
	HTTP HTTPClassifier `yaml:"http"`
}

// HTTPClassifier is a model on another server that classifies a text. It is called only if the
// signals computed in this process do not settle a decision.
type HTTPClassifier struct {
	// URL is the base URL of the server, without the last part of the path, such as
	// http://guard:8000/v1. vLLM serves classify and pooling at its root; for these, /v1 is
	// optional.
	URL string `yaml:"url"`
	// API selects the API of the server: classify or pooling (vLLM), tei (Text Embeddings
	// Inference, /predict) or chat (a guard model on any OpenAI-compatible server). Default chat.
	API string `yaml:"api"`
	// Model is the name of the model on the server. tei needs none.
	Model string `yaml:"model"`
	// Template selects, for api chat, the prompt for the model and how its response is parsed:
	// llama_guard, qwen3guard, shieldgemma, gpt_oss_safeguard, or instruct for any other model,
	// which then responds with one of labels.
	Template string `yaml:"template"`
	// Policy describes in words what shieldgemma, gpt_oss_safeguard and instruct look for.
	Policy string `yaml:"policy"`
	// Labels lists the labels of the model in its order, for classify, pooling and tei, or the
	// labels to choose from, for instruct. Default: those of the server or the template.
	Labels []string `yaml:"labels"`
	// Timeout limits one request. On timeout, the classifier is unknown (timeout). Default 2s.
	Timeout option.Duration `yaml:"timeout"`
	// APIKey is sent as a bearer token. A reference, ${NAME} or file:PATH. Default: none is sent.
	APIKey string `yaml:"api_key" secret:"true"`
	// Memo is the number of results that are remembered, keyed by the SHA-256 of the text. -1
	// disables the memo. Default 4096.
	Memo int `yaml:"memo"`
	// MaxBytes is the maximum amount of a text that is sent. Of a longer text, the start and the
	// end are sent. Default 32KiB.
	MaxBytes option.Bytes `yaml:"max_bytes"`
}

// Remote reports whether the classifier is on another server.
func (o *OwnClassifier) Remote() bool { return o.HTTP.URL != "" }

// Names are the names of the classifiers of one's own.
func (c *Classify) Names() signal.Names {
	out := make(signal.Names, len(c.Classifiers))
	for i := range c.Classifiers {
		out[i] = c.Classifiers[i].Name
	}
	return out
}

const defaultMemo = 4096

// classifiers checks the classifiers of one's own without opening any.
func (c *checker) classifiers() {
	list := c.cfg.Classify.Classifiers
	c.names("classify.classifiers", len(list), func(i int) string { return list[i].Name })
	if len(list) > signal.MaxOwn {
		c.at("classify.classifiers", "%d of them, at most %d can be configured", len(list), signal.MaxOwn)
		c.cfg.Classify.Classifiers = list[:signal.MaxOwn]
		list = c.cfg.Classify.Classifiers
	}
	for i := range list {
		o, path := &list[i], fmt.Sprintf("classify.classifiers[%d]", i)
		if _, taken := signal.ParseKind(o.Name); taken {
			c.at(path+".name", "%q is a signal of its own", o.Name)
		}
		if o.Name == "" || strings.TrimSpace(o.Name) != o.Name {
			c.at(path+".name", "a name is required, such as toxicity")
		}
		if o.Threshold < 0 || o.Threshold > 1 || math.IsNaN(o.Threshold) {
			c.at(path+".threshold", "found %v, expected a probability from 0 to 1", o.Threshold)
		}
		if o.HTTP.isZero() {
			o.Model = cmp.Or(o.Model, o.Name)
			continue
		}
		if o.Model != "" {
			c.at(path+".model", "model refers to a classifier written by `signalbox fit`; set the model of the server in http.model")
		}
		c.httpClassifier(o, path+".http")
	}
}

func (h *HTTPClassifier) isZero() bool {
	return h.URL == "" && h.API == "" && h.Model == "" && h.Template == "" && h.Policy == "" &&
		h.Labels == nil && h.Timeout == 0 && h.APIKey == "" && h.Memo == 0 && h.MaxBytes == 0
}

func (c *checker) httpClassifier(o *OwnClassifier, path string) {
	h := &o.HTTP
	c.server(path, h.URL, "http://guard:8000/v1", h.APIKey, &h.Timeout)
	c.asked(h, path)
	c.bounds(h, path)
}

// asked checks how a model is asked.
func (c *checker) asked(h *HTTPClassifier, path string) {
	h.API = cmp.Or(h.API, string(judge.Chat))
	c.oneOf(path+".api", h.API, judge.APIs()...)
	chat, template := h.API == string(judge.Chat), judge.Template(h.Template)
	c.oneOf(path+".template", h.Template, judge.Templates()...)
	switch {
	case chat && h.Template == "":
		c.at(path+".template", "one is required for api chat: %s", strings.Join(judge.Templates(), ", "))
	case !chat && h.Template != "":
		c.at(path+".template", "only api chat has templates")
	case chat && template.TakesPolicy() && strings.TrimSpace(h.Policy) == "":
		c.at(path+".policy", "is required: template %s needs a description of what to look for", h.Template)
	case h.Policy != "" && (!chat || !template.TakesPolicy()):
		c.at(path+".policy", "the model has a built-in policy and accepts no other")
	}
	if h.Model == "" && h.API != string(judge.TEI) {
		c.at(path+".model", "the name of the model on the server is required")
	}
	c.labels(h, path, chat && template == judge.Instruct, chat)
}

// bounds checks numbers, and sets those that are not given.
func (c *checker) bounds(h *HTTPClassifier, path string) {
	if h.MaxBytes < 0 || h.MaxBytes > 1<<20 {
		c.at(path+".max_bytes", "found %d, expected at most 1MiB", h.MaxBytes)
	}
	switch {
	case h.Memo < -1:
		c.at(path+".memo", "%d is negative; -1 turns it off", h.Memo)
	case h.Memo == 0:
		h.Memo = defaultMemo
	}
}

// labels checks those of a model: needed where it chooses from them, not taken by other templates.
func (c *checker) labels(h *HTTPClassifier, path string, chooses, chat bool) {
	for i, l := range h.Labels {
		if l == "" || slices.Contains(h.Labels[:i], l) {
			c.at(fmt.Sprintf("%s.labels[%d]", path, i), "%q is empty or listed twice", l)
		}
	}
	switch {
	case chooses && len(h.Labels) < 2:
		c.at(path+".labels", "at least two labels are required for the model to choose from")
	case chat && !chooses && h.Labels != nil:
		c.at(path+".labels", "the template has fixed labels")
	case !chat && len(h.Labels) == 1:
		c.at(path+".labels", "at least two labels are required")
	}
}
