package app

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"signalbox/classify"
	"signalbox/classify/head"
	"signalbox/internal/config"
	"signalbox/internal/hub/local"
	elsewhere "signalbox/internal/judge"
	"signalbox/internal/signal"
	"signalbox/proxy/decisionlog"
)

var _ classify.Judge = (*elsewhere.Client)(nil)

// judged is a classifier on another server. A reload that changes nothing of it keeps it, with what
// it remembers.
type judged struct {
	*elsewhere.Client

	options config.HTTPClassifier
	mark    float64 // its threshold
	http    *http.Client
}

func (j *judged) close() error {
	j.http.CloseIdleConnections()
	return nil
}

// headDir is the folder of a trained classifier.
func headDir(c *config.Classify, o *config.OwnClassifier) (string, error) {
	return local.Dir(c.ModelsDir, o.Model)
}

// classifierFiles are the files that tell whether a trained classifier has changed: each names the
// checksum of its weights.
func classifierFiles(c *config.Classify) []string {
	var out []string
	for i := range c.Classifiers {
		if o := &c.Classifiers[i]; !o.Remote() {
			if dir, err := headDir(c, o); err == nil {
				out = append(out, filepath.Join(dir, head.InfoFile), dir+".onnx")
			}
		}
	}
	return out
}

// readInfo reads what a trained classifier says of itself.
func readInfo(c *config.Classify, o *config.OwnClassifier) (*head.Info, error) {
	dir, err := headDir(c, o)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, head.InfoFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("found neither a trained classifier in %s nor an adapter %s.onnx: train one with "+
			"`signalbox fit --name %s --data ROWS.jsonl --out %s`", dir, dir, o.Name, c.ModelsDir)
	}
	if err != nil {
		return nil, fmt.Errorf("read classifier: %w", err)
	}
	return head.DecodeInfo(data)
}

func readHead(c *config.Classify, o *config.OwnClassifier) (*head.Head, error) {
	dir, err := headDir(c, o)
	if err != nil {
		return nil, err
	}
	info, err := os.ReadFile(filepath.Join(dir, head.InfoFile))
	if err != nil {
		return nil, fmt.Errorf("read classifier: %w", err)
	}
	weights, err := os.ReadFile(filepath.Join(dir, head.WeightsFile))
	if err != nil {
		return nil, fmt.Errorf("read classifier: %w", err)
	}
	h, err := head.Decode(info, weights)
	if err != nil {
		return nil, err
	}
	return h.WithThreshold(o.Threshold), nil
}

// embeddingOf is the fingerprint of the model that gives the embedding; empty when none does.
func embeddingOf(placed []placement, c *config.Classify) string {
	marks := make(map[signal.Kind]string)
	define(placed, c, marks)
	return marks[signal.Embedding]
}

// catalogOwn adds what the classifiers of one's own can say. Errors are *config.TaskError, joined.
func catalogOwn(c *config.Classify, placed []placement, out *config.Catalog, trained bool) error {
	var errs []error
	embedding := embeddingOf(placed, c)
	for i := range c.Classifiers {
		o, kind := &c.Classifiers[i], signal.Own+signal.Kind(i)
		own := signal.OwnClassifier{Name: o.Name}
		fail := func(err error) {
			errs = append(errs, &config.TaskError{Index: i, Field: "model", Err: err, Own: true})
		}
		switch {
		case o.Remote():
			out.Elsewhere |= signal.MaskOf(kind)
			out.Signals |= signal.MaskOf(kind)
			own.Labels, own.Thresholds = remoteLabels(o)
		case o.Model != "" && trained:
			ready, lexical, err := trainedHere(c, o, placed, embedding, &own)
			if err != nil {
				fail(err)
			}
			if ready || err != nil { // beside the error nothing more is to be said of it
				out.Signals |= signal.MaskOf(kind)
			}
			if lexical {
				out.Lexical |= signal.MaskOf(kind)
			}
		}
		out.Own = append(out.Own, own)
	}
	return errors.Join(errs...)
}

// trainedHere sets what a trained classifier or an adapter can say, and reports whether the models of
// the configuration let it.
func trainedHere(c *config.Classify, o *config.OwnClassifier, placed []placement, embedding string,
	own *signal.OwnClassifier,
) (ready, lexical bool, err error) {
	a, err := readAdapter(c, o)
	if err != nil {
		return false, false, err
	}
	if a != nil {
		own.Labels, own.Thresholds = a.Labels, a.Thresholds
		_, err := baseOf(a, placed)
		return err == nil, false, err
	}
	info, err := readInfo(c, o)
	if err != nil {
		return false, false, err
	}
	info = info.WithThreshold(o.Threshold)
	own.Labels, own.Thresholds = info.Labels, info.Thresholds
	switch {
	case info.Dims == 0: // n-grams alone
		return true, true, nil
	case embedding == "": // no model: the classifier is unknown, and rules warn of it
		return false, false, nil
	case info.Embedding != embedding:
		return false, false, errors.New("it was trained on a different embedding than the one in classify.tasks: " +
			"train it again with `signalbox fit`")
	}
	return true, false, nil
}

// remoteLabels are the labels of a classifier on another server and the thresholds that rules
// without a min_score take. Those of Llama Guard and Qwen3Guard beside the verdict hold together
// with it.
func remoteLabels(o *config.OwnClassifier) (labels []string, thresholds []float64) {
	client, err := elsewhere.New(judgeOptions(o, nil))
	if err != nil {
		return nil, nil // the configuration tells of it elsewhere
	}
	labels = client.Labels()
	thresholds = make([]float64, len(labels))
	if t := elsewhere.Template(o.HTTP.Template); t == elsewhere.LlamaGuard || t == elsewhere.Qwen3Guard ||
		o.Threshold > 0 {
		for i := range thresholds {
			if thresholds[i] = o.Threshold; o.Threshold == 0 {
				thresholds[i] = defaultMark
			}
		}
	}
	return labels, thresholds
}

// defaultMark is the probability from which a label of a guard model holds.
const defaultMark = 0.5

func judgeOptions(o *config.OwnClassifier, client *http.Client) elsewhere.Options {
	h := &o.HTTP
	return elsewhere.Options{
		URL: h.URL, API: elsewhere.API(h.API), Model: h.Model, Template: elsewhere.Template(h.Template),
		Policy: h.Policy, Labels: h.Labels, Timeout: time.Duration(h.Timeout), Key: h.APIKey,
		Memo: max(h.Memo, 0), MaxBytes: int(h.MaxBytes), Threshold: o.Threshold, HTTP: client,
	}
}

// own opens the classifiers of one's own that are no adapters, and tells which signals those on
// other servers give. Those are kept where nothing changed.
func (n *neural) own(
	cfg *config.Config, list []adapted, set *modelSet,
) ([]classify.Own, map[signal.Kind]classify.Given, error) {
	c := &cfg.Classify
	out := make([]classify.Own, len(c.Classifiers))
	for i := range c.Classifiers {
		o := &c.Classifiers[i]
		out[i].Name = o.Name
		if slices.ContainsFunc(list, func(a adapted) bool { return a.kind == signal.Own+signal.Kind(i) }) {
			continue // an engine gives it
		}
		if !o.Remote() {
			h, err := readHead(c, o)
			if err != nil {
				return nil, nil, fmt.Errorf("classifier %q: %w", o.Name, err)
			}
			out[i].Head = h
			continue
		}
		j, err := n.judge(o)
		if err != nil {
			return nil, nil, fmt.Errorf("classifier %q: %w", o.Name, err)
		}
		if !slices.Contains(n.judges, j) {
			set.fresh = append(set.fresh, j)
		}
		set.judges, out[i].Judge = append(set.judges, j), j
	}
	for _, j := range n.judges {
		if !slices.Contains(set.judges, j) {
			set.dropped = append(set.dropped, j)
		}
	}
	gives, err := given(c, cfg.Catalog.Own)
	return out, gives, err
}

// judge returns the classifier on another server that options name, the one in use where there is
// one.
func (n *neural) judge(o *config.OwnClassifier) (*judged, error) {
	for _, j := range n.judges {
		if j.mark == o.Threshold && reflect.DeepEqual(j.options, o.HTTP) {
			return j, nil
		}
	}
	j := &judged{options: o.HTTP, mark: o.Threshold, http: modelClient(modelTransport())}
	var err error
	j.Client, err = elsewhere.New(judgeOptions(o, j.http))
	return j, err
}

// defineOwn tells which models the classifiers of one's own are, for the decision log.
func defineOwn(c *config.Classify, out map[signal.Kind]string) {
	for i := range c.Classifiers {
		o := &c.Classifiers[i]
		what := ""
		if o.Remote() {
			h := o.HTTP
			h.APIKey, h.Timeout, h.Memo = "", 0, 0
			what = fmt.Sprintf("%+v %v", h, o.Threshold)
		} else if a, err := readAdapter(c, o); err == nil && a != nil {
			what = fmt.Sprintf("%s %v", a.Sum, o.Threshold)
		} else if info, err := readInfo(c, o); err == nil {
			what = fmt.Sprintf("%s %s %v", info.SHA256, info.Embedding, o.Threshold)
		}
		out[signal.Own+signal.Kind(i)] = decisionlog.Fingerprint([]byte(what))
	}
	for i := range c.Tasks {
		t := &c.Tasks[i]
		if k, at := givenAs(c, t); at >= 0 {
			out[k] = decisionlog.Fingerprint([]byte(out[signal.Own+signal.Kind(at)] + " " + t.Positive))
		}
	}
}
