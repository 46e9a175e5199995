package bundle

import (
	"fmt"
	"slices"
	"strings"
)

// The names of tasks whose labels have a meaning in signalbox.
const (
	taskDomain     = "domain"
	taskJailbreak  = "jailbreak"
	taskInjection  = "injection"
	taskPII        = "pii"
	taskComplexity = "complexity"
	taskFactCheck  = "factcheck"
	taskEmbedding  = "embedding"
	taskIntent     = "intent"
	taskGrounding  = "grounding"
)

// Labels of the contract that this file uses.
const (
	labelJailbreak = "jailbreak"
	labelInjection = "injection"
	labelBenign    = "benign"
	labelNeeds     = "needs"
	labelNeedsNot  = "no"

	labelUnsupported = "unsupported"
	labelSupported   = "supported"
)

// domains are the categories of MMLU-Pro (arXiv 2406.01574).
//
//nolint:gochecknoglobals // constant table
var domains = []string{
	"biology", "business", "chemistry", "computer science", "economics", "engineering", "health", "history",
	"law", "math", "other", "philosophy", "physics", "psychology",
}

// PIITypes returns the types of personal data that signalbox defines, sorted. The caller owns the
// slice.
func PIITypes() []string { return slices.Clone(piiTypes) }

//nolint:gochecknoglobals // constant table
var piiTypes = []string{
	"AGE", "CREDIT_CARD", "DATE_TIME", "DOMAIN_NAME", "EMAIL_ADDRESS", "GPE", "IBAN_CODE", "IP_ADDRESS",
	"NATIONAL_ID", "NRP", "ORGANIZATION", "PERSON", "PHONE_NUMBER", "STREET_ADDRESS", "TITLE",
	"US_DRIVER_LICENSE", "US_SSN", "ZIP_CODE",
}

// piiSynonyms are names of other tag sets (CoNLL-2003, OntoNotes, Presidio and public PII models)
// for the same thing, folded.
//
//nolint:gochecknoglobals // constant table
var piiSynonyms = map[string]string{
	"per": "PERSON", "name": "PERSON", "first name": "PERSON", "last name": "PERSON", "firstname": "PERSON",
	"lastname": "PERSON", "middlename": "PERSON", "givenname": "PERSON", "surname": "PERSON", "full name": "PERSON",
	"org": "ORGANIZATION", "organisation": "ORGANIZATION", "company": "ORGANIZATION", "companyname": "ORGANIZATION",
	"loc": "GPE", "location": "GPE", "city": "GPE", "state": "GPE", "country": "GPE", "county": "GPE",
	"email": "EMAIL_ADDRESS", "phone": "PHONE_NUMBER", "phonenumber": "PHONE_NUMBER", "telephonenum": "PHONE_NUMBER",
	"ssn": "US_SSN", "creditcard": "CREDIT_CARD", "creditcardnumber": "CREDIT_CARD", "credit card number": "CREDIT_CARD",
	"iban": "IBAN_CODE", "ip": "IP_ADDRESS", "ipv4": "IP_ADDRESS", "ipv6": "IP_ADDRESS", "url": "DOMAIN_NAME",
	"domain": "DOMAIN_NAME", "date": "DATE_TIME", "time": "DATE_TIME", "dob": "DATE_TIME", "norp": "NRP",
	"street": "STREET_ADDRESS", "address": "STREET_ADDRESS", "zipcode": "ZIP_CODE", "zip": "ZIP_CODE",
	"postcode": "ZIP_CODE", "driver license": "US_DRIVER_LICENSE", "driverlicense": "US_DRIVER_LICENSE", "prefix": "TITLE",
}

// attackLabels are names of the class that a model for jailbreaks or injections looks for, and
// benignLabels names of the other one, folded; the pairs below them are the same for their tasks.
// Numbers are there for models that call their classes 0 and 1.
//
//nolint:gochecknoglobals // constant table
var (
	attackLabels = []string{
		"jailbreak", "injection", "prompt injection", "jailbreak injection", "attack", "malicious", "unsafe", "harmful",
		"adversarial", "threat", "yes", "true", "1",
	}
	benignLabels = []string{
		"benign", "safe", "legit", "legitimate", "clean", "normal", "harmless", "no jailbreak", "not jailbreak",
		"no injection", "no", "false", "0",
	}
	needsLabels = []string{
		"needs", "needs fact check", "fact check needed", "fact check", "factual", "checkworthy", "yes", "true", "1",
	}
	needsNotLabels = []string{
		"no", "no fact check needed", "no fact check", "not needed", "non factual", "not checkworthy", "false", "0",
	}
	unsupportedLabels = []string{
		"unsupported", "not supported", "hallucinated", "hallucination", "hal", "ungrounded", "yes", "true", "1",
	}
	supportedLabels = []string{
		"supported", "not hallucinated", "no hallucination", "factual", "faithful", "grounded", "o", "no", "false", "0",
	}
	complexityLabels = map[string]string{
		"low": "low", "easy": "low", "simple": "low", "trivial": "low",
		"medium": "medium", "moderate": "medium", "intermediate": "medium",
		"high": "high", "hard": "high", "complex": "high", "difficult": "high",
	}
	entailmentLabels = map[string]string{
		"entailment": "entailment", "entails": "entailment", "entailed": "entailment", "supported": "entailment",
		"neutral": "neutral", "not entailment": "neutral", "unsupported": "neutral",
		"contradiction": "contradiction", "contradicts": "contradiction", "contradicted": "contradiction",
	}
)

// givesPairs reports whether labels are those of natural language inference, which reads two texts.
func givesPairs(labels []string) bool {
	for _, l := range labels {
		if entailmentLabels[fold(l)] == "" {
			return false
		}
	}
	return len(labels) > 0
}

// meaningOf translates the labels of a model into those of the contract, in t, and finds the
// positive label of yes-or-no tasks. positive is the configured one, or empty.
func meaningOf(t *Task, labels []string, renames map[string]string, positive string) error {
	t.Labels = make([]string, len(labels))
	for i, l := range labels {
		t.Labels[i] = l
		if to, ok := renames[l]; ok {
			t.Labels[i] = to
		}
	}
	if to, ok := renames[positive]; ok {
		positive = to
	}
	switch {
	case t.Kind == Token && t.Name == taskGrounding:
		return groundingOf(t, positive)
	case t.Kind == Token:
		return tagsOf(t)
	case t.Kind == Pair:
		translate(t.Labels, entailmentLabels)
	case t.Name == taskDomain:
		for i, l := range t.Labels {
			if f := fold(l); slices.Contains(domains, f) {
				t.Labels[i] = f
			}
		}
	case t.Name == taskComplexity:
		return complexityOf(t)
	case t.Name == taskJailbreak:
		return binary(t, positive, attackLabels, benignLabels, labelJailbreak, labelBenign)
	case t.Name == taskInjection:
		return binary(t, positive, attackLabels, benignLabels, labelInjection, labelBenign)
	case t.Name == taskFactCheck:
		return binary(t, positive, needsLabels, needsNotLabels, labelNeeds, labelNeedsNot)
	}
	if (&labelSource{labels: t.Labels}).isGeneric() {
		return fmt.Errorf("%w: %v say nothing: set labels, as in {%s: NAME}", ErrLabels, t.Labels, t.Labels[0])
	}
	if positive != "" && !slices.Contains(t.Labels, positive) {
		return fmt.Errorf("%w: positive: %q is not one of %v", ErrLabels, positive, t.Labels)
	}
	t.Positive = positive
	return nil
}

func translate(labels []string, words map[string]string) {
	for i, l := range labels {
		if to, ok := words[fold(l)]; ok {
			labels[i] = to
		}
	}
}

func complexityOf(t *Task) error {
	have := slices.Clone(t.Labels)
	translate(t.Labels, complexityLabels)
	for i, l := range t.Labels {
		if complexityLabels[l] != l || slices.Contains(t.Labels[:i], l) {
			return fmt.Errorf("%w: %v are not low, medium and high: set labels", ErrLabels, have)
		}
	}
	return nil
}

// binary finds the positive label of a yes-or-no task and renames the labels of two-label models to
// those of the contract. If several labels of a model could be meant, or none, it has to be
// configured: choosing one of two kinds of attack would ignore the other.
func binary(t *Task, positive string, yes, no []string, nameYes, nameNo string) error {
	at := slices.Index(t.Labels, positive)
	if positive != "" && at < 0 {
		return fmt.Errorf("%w: positive: %q is not one of %v", ErrLabels, positive, t.Labels)
	}
	generics := (&labelSource{labels: t.Labels}).isGeneric() && !slices.ContainsFunc(t.Labels, isNumber)
	for i, l := range t.Labels {
		if positive != "" || generics || !slices.Contains(yes, fold(l)) {
			continue
		}
		if at >= 0 {
			return fmt.Errorf("%w: %q and %q could both be meant: set positive", ErrLabels, t.Labels[at], l)
		}
		at = i
	}
	if at < 0 {
		return fmt.Errorf("%w: none of %v is known to be the positive one: set positive", ErrLabels, t.Labels)
	}
	if len(t.Labels) == 2 {
		if other := t.Labels[1-at]; positive == "" && !slices.Contains(no, fold(other)) {
			return fmt.Errorf("%w: %q is not known to be the opposite of %q: set positive", ErrLabels, other, t.Labels[at])
		}
		t.Labels[at], t.Labels[1-at] = nameYes, nameNo
	}
	t.Positive = t.Labels[at]
	return nil
}

// groundingOf finds the label of unsupported tokens. Two classes without names are interpreted as
// in the best-known models for this task, HaluGate and LettuceDetect: 1 is unsupported.
func groundingOf(t *Task, positive string) error {
	if positive == "" && len(t.Labels) == 2 && (&labelSource{labels: t.Labels}).isGeneric() {
		t.Labels, t.Positive = []string{labelSupported, labelUnsupported}, labelUnsupported
		return nil
	}
	return binary(t, positive, unsupportedLabels, supportedLabels, labelUnsupported, labelSupported)
}

func isNumber(label string) bool { return strings.Trim(label, "0123456789") == "" }

// tagsOf converts the labels of a token task to BIO form, with the contract's types where it
// defines them. Tags of other schemes are recognised by their prefix: in BIOES and BILOU S and U
// begin a span of one token, E and L continue one. Types without a prefix continue a span (IO).
func tagsOf(t *Task) error {
	for i, l := range t.Labels {
		if fold(l) == "o" {
			t.Labels[i] = outsideTag
			continue
		}
		if generic.MatchString(l) {
			return fmt.Errorf("%w: %q of a token task says nothing: set labels", ErrLabels, l)
		}
		prefix, name := "I", l
		if len(l) > 2 && (l[1] == '-' || l[1] == '_') && strings.ContainsRune("BISUEL", rune(l[0])) {
			name = l[2:]
			if strings.ContainsRune("BSU", rune(l[0])) {
				prefix = "B"
			}
		}
		t.Labels[i] = prefix + "-" + piiType(name)
	}
	if !slices.Contains(t.Labels, outsideTag) {
		return fmt.Errorf("%w: %v have no O, for tokens outside of all spans: set labels", ErrLabels, t.Labels)
	}
	return nil
}

// piiType returns the contract's name of a type; types that it does not define keep theirs.
func piiType(name string) string {
	upper := strings.ToUpper(strings.ReplaceAll(fold(name), " ", "_"))
	if slices.Contains(piiTypes, upper) {
		return upper
	}
	if to, ok := piiSynonyms[fold(name)]; ok {
		return to
	}
	return upper
}
