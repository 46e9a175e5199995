package main

import (
	"context"
	_ "embed" // of what package main reads
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Complete answers of an assistant about documents: faithful answers of 4 to 8 sentences, with
// three sentences of each replaced by typical errors of models. All texts are invented, by authors
// who had seen neither the product nor its rules. The guard's model was trained on sentences by
// others about other texts.
//
//go:embed testdata/documents.jsonl
var documentsSet string

// The same for answers that calculate something in every second sentence, an eighth of them in
// German, French or Spanish, with four or five errors each.
//
//go:embed testdata/calculations.jsonl
var calculationsSet string

// documented is a document, a question and the answer to it.
type documented struct {
	Document, Question, Answer string
	False                      []struct{ Sentence, Instead string }
}

// documents checks these answers, each unchanged and with one false sentence at a time.
func (b *bench) documents(ctx context.Context, r *report) error {
	if err := b.answersAbout(ctx, r, "documents", documentsSet); err != nil {
		return err
	}
	return b.answersAbout(ctx, r, "calculations", calculationsSet)
}

func (b *bench) answersAbout(ctx context.Context, r *report, name, set string) error {
	var answers, sentences, falsified []judged
	for line := range strings.Lines(set) {
		var d documented
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			return err
		}
		got, err := b.verify(ctx, []string{d.Document}, d.Question, d.Answer)
		if err != nil {
			return err
		}
		answers = append(answers, judged{pair: &pair{Label: supported}, verdict: got.Verdict})
		for _, c := range got.Claims {
			sentences = append(sentences, judged{pair: &pair{Label: supported}, verdict: flat(c.Verdict)})
		}
		for _, f := range d.False {
			v, err := b.falsified(ctx, &d, f.Sentence, f.Instead)
			if err != nil {
				return err
			}
			falsified = append(falsified, judged{pair: &pair{Label: unsupported}, verdict: v})
		}
		if b.seeds == quick().seeds && len(answers) == 3 {
			break
		}
	}
	r.figure(name+": faithful answers with a mark", share(answers, supported, unsupported), "")
	r.figure(name+": sentences of them, flagged", share(sentences, supported, unsupported), "")
	r.figure(name+": false sentences, flagged", share(falsified, unsupported, unsupported), "")
	r.figure(name+": false sentences, called supported", share(falsified, unsupported, supported), "")
	return nil
}

// flat maps a verdict on a claim to a verdict on an answer.
func flat(verdict string) string {
	if verdict == "contradicted" {
		return unsupported
	}
	return verdict
}

// falsified is the verdict on a false sentence in its answer: unsupported if one of its claims is
// flagged, supported if all of its claims are, else that of another claim; empty if it has no
// claim.
func (b *bench) falsified(ctx context.Context, d *documented, sentence, instead string) (string, error) {
	before, after, ok := strings.Cut(d.Answer, sentence)
	if !ok {
		return "", fmt.Errorf("no sentence %q in its answer", sentence)
	}
	got, err := b.verify(ctx, []string{d.Document}, d.Question, before+instead+after)
	if err != nil {
		return "", err
	}
	from := utf8.RuneCountInString(before)
	to, verdict := from+utf8.RuneCountInString(instead), ""
	for _, c := range got.Claims {
		switch v := flat(c.Verdict); {
		case c.Start >= to || c.End <= from:
		case v == unsupported:
			return unsupported, nil
		case verdict == "" || verdict == supported:
			verdict = v
		}
	}
	return verdict, nil
}
