package check

import (
	"slices"
	"sync"

	"signalbox/stream/evidence"
	"signalbox/stream/numeric"
)

// feature is the index of one feature in the result of Features.
type feature int

// The features, in order. A Fusion names those it uses, so new ones may be appended.
const (
	// highest probability of entailment over the premises that the judge read.
	entailMax     feature = iota
	entailBest            // probability for the best window
	neutralMin            // lowest neutral probability
	neutralBest           // for the best window
	contraMax             // highest probability of contradiction
	contraMin             // lowest
	contraBest            // for the best window
	wordsMissing          // content words of the claim that no premise has
	missingShare          // their share
	missingWeight         // their share, weighted by length and name: rarity without a corpus
	namesMissing          // names of the claim that no premise has
	namesShare            // their share of the names
	numbersSame           // numbers that are in the evidence as they are
	numbersWorked         // numbers supported after rounding, conversion or calculation
	numbersContra         // contradicted numbers
	numbersAbsent         // numbers that are nowhere in the evidence
	negationMore          // negations that the best sentence lacks
	negationLess          // negations of the best sentence that the claim lacks
	oppositeWords         // words whose opposite is in the best sentence
	amountDiffers         // 1: other quantity word than the best sentence; 0.5: only one has any
	replacedWords         // words in the place of others of the best sentence
	replacedNames         // names among them
	insertedWords         // words where the best sentence has none
	droppedWords          // omitted words of the best sentence
	sentenceShare         // share of the content words in the best sentence
	bigramShare           // share of adjacent word pairs that a premise has
	runShare              // longest common run of words, as a share of the claim
	orderInverted         // share of content word pairs in another order than in the best sentence
	claimWords            // words of the claim
	premiseScore          // share of the claim's words in the first premise, by rarity; at most 1
	premiseCount          // premises that share words or numbers with the claim
	pointsBack            // 1 if the claim begins with a pronoun and has a context

	numFeatures
)

//nolint:gochecknoglobals // constant table
var featureNames = [numFeatures]string{
	entailMax: "entail_max", entailBest: "entail_best", neutralMin: "neutral_min", neutralBest: "neutral_best",
	contraMax: "contra_max", contraMin: "contra_min", contraBest: "contra_best",
	wordsMissing: "words_missing", missingShare: "missing_share", missingWeight: "missing_weight",
	namesMissing: "names_missing", namesShare: "names_share",
	numbersSame: "numbers_same", numbersWorked: "numbers_worked_out", numbersContra: "numbers_contradicted", numbersAbsent: "numbers_absent",
	negationMore: "negation_more", negationLess: "negation_less", oppositeWords: "opposites", amountDiffers: "amount_differs",
	replacedWords: "replaced_words", replacedNames: "replaced_names", insertedWords: "inserted_words", droppedWords: "dropped_words",
	sentenceShare: "sentence_share", bigramShare: "bigram_share", runShare: "run_share", orderInverted: "order_inverted",
	claimWords: "claim_words", premiseScore: "premise_score", premiseCount: "premise_count", pointsBack: "points_back",
}

// FeatureNames returns the names of the features, in the order of Features.
func FeatureNames() []string { return slices.Clone(featureNames[:]) }

//nolint:gochecknoglobals // scratch space, holds nothing between calls
var matchers = sync.Pool{New: func() any { return new(matcher) }}

// Features appends the features of a claim to dst, in the order of FeatureNames, and returns the
// extended slice. premises are those that the evidence returned for the claim, best first; findings
// are the results for its numbers. inf are the results of a Judge for the premises it read, the
// first premise first; if it is empty, the features of the Judge are 0. Counts are at least 0;
// shares and probabilities are in [0,1]. Safe for concurrent use; allocates only to grow dst.
func Features(dst []float64, claim Claim, premises []evidence.Premise, findings []numeric.Finding, inf []Inference) []float64 {
	m := matchers.Get().(*matcher) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer matchers.Put(m)
	from := len(dst)
	dst = slices.Grow(dst, int(numFeatures))[:from+int(numFeatures)]
	f := dst[from:]
	clear(f)
	inferred(f, inf)
	numbered(f, findings)
	o := m.read(claim.Text, premises, findings)
	worded(f, &o)
	f[premiseCount] = sharing(premises)
	if len(premises) > 0 {
		f[premiseScore] = min(1, premises[0].Score)
	}
	if claim.Context != "" && continues(claim.Text) {
		f[pointsBack] = 1
	}
	return dst
}

// sharing counts the premises that share something with the claim.
func sharing(premises []evidence.Premise) float64 {
	n := 0
	for i := range premises {
		if premises[i].Score > 0 {
			n++
		}
	}
	return float64(n)
}

func inferred(f []float64, inf []Inference) {
	if len(inf) == 0 {
		return
	}
	f[neutralMin], f[contraMin] = 1, 1
	for _, p := range inf {
		f[entailMax] = max(f[entailMax], float64(p.Entailment))
		f[neutralMin] = min(f[neutralMin], float64(p.Neutral))
		f[contraMax] = max(f[contraMax], float64(p.Contradiction))
		f[contraMin] = min(f[contraMin], float64(p.Contradiction))
	}
	f[entailBest], f[neutralBest], f[contraBest] = float64(inf[0].Entailment), float64(inf[0].Neutral), float64(inf[0].Contradiction)
}

func numbered(f []float64, findings []numeric.Finding) {
	for _, n := range findings {
		switch n.Verdict {
		case numeric.Supported:
			if n.Reason == numeric.SameValue {
				f[numbersSame]++
			} else {
				f[numbersWorked]++
			}
		case numeric.Contradicted:
			f[numbersContra]++
		case numeric.Unsupported:
			f[numbersAbsent]++
		case numeric.NotCheckable:
			if n.Reason == numeric.Elsewhere {
				f[numbersAbsent]++
			}
		}
	}
}

func worded(f []float64, o *overlap) {
	f[wordsMissing], f[missingShare] = float64(o.missing), share(o.missing, o.content)
	if o.weight > 0 {
		f[missingWeight] = o.missingWeight / o.weight
	}
	f[namesMissing], f[namesShare] = float64(o.missingNames), share(o.missingNames, o.names)
	f[negationMore], f[negationLess] = float64(o.negated), float64(o.denied)
	f[oppositeWords], f[amountDiffers] = float64(o.opposed), o.amount
	f[replacedWords], f[replacedNames] = float64(o.replaced), float64(o.replacedNames)
	f[insertedWords], f[droppedWords] = float64(o.inserted), float64(o.dropped)
	f[sentenceShare], f[bigramShare], f[runShare], f[orderInverted] = o.best, o.bigrams, o.run, o.inverted
	f[claimWords] = float64(o.words)
}
