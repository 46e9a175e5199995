package check

import (
	"slices"

	"signalbox/stream/evidence/words"
)

//nolint:gochecknoglobals // constant tables
var (
	// mutual are words beside which what they join may change places and the same is said.
	mutual = hashes("and or with against like than next between beside near opposite together versus vs " +
		"distance marry married divorce divorced meet meets met border borders equal equals " +
		"match resemble share join joins joined connect connects connected connecting link " +
		"links linked play plays played face faced fought compete competed adjacent neighbour " +
		"neighbor same similar different differ differs und oder mit gegen wie neben zwischen " +
		"verbindet et ou avec contre comme entre relie y o con contra como conecta junto")
	// leads are prepositions that are no stop words; what follows is moved with them.
	leads = hashes("ab seit gegen ohne durch um bis vor während wegen laut trotz within until since " +
		"during despite through pendant depuis selon durante desde según hacia")
	// passives are forms of to be, in which who does it and what is done change places.
	passives = hashes("is are was were be been being ist sind war waren wird werden wurde wurden est sont " +
		"était étaient été es son fue fueron sido")
	// articles tell nothing of what a noun is in its sentence.
	articles = hashes("the a an his her its their our der die das den dem des ein eine einen le la les un " +
		"une el los las una")
)

var as = hashOf("as") //nolint:gochecknoglobals // constant

// maxExchanged bounds the words of what stands in another's place, a name or a noun with its
// adjective.
const maxExchanged = 3

// exchanged reports whether the claim has the words of a sentence, but for two of them, or two
// names, that stand in each other's place: "from Vos to Colby" of "from Colby to Vos". Words that
// stand there twice are left out. What was moved as a whole, as to the beginning, changes places
// with nothing.
func (m *matcher) exchanged(sentence []words.Word) bool {
	if has(m.claim, mutual) || count(m.claim, as) > 1 || has(m.claim, passives) != has(sentence, passives) ||
		differ(m.claim, sentence, by) || differ(m.claim, sentence, from) || differ(m.claim, sentence, to) ||
		!m.placesOnce(sentence) {
		return false
	}
	order := slices.Sorted(slices.Values(m.at))
	first, last := 0, len(m.at)-1
	for first < len(order) && m.at[first] == order[first] {
		first++
	}
	for last > first && m.at[last] == order[last] {
		last--
	}
	if len(m.at) < minExchanged || last <= first {
		return false
	}
	part := m.at[first : last+1]
	order = order[first : last+1]
	for u := 1; u <= maxExchanged; u++ {
		for v := 1; v <= maxExchanged && u+v <= len(part); v++ {
			if changePlaces(part, order, u, v) && (u+v < len(part) || u+v == 2 && m.bothNames(sentence, part)) {
				a, b := part[:u], part[len(part)-v:]
				return m.inPlaceOf(sentence, a, b) && m.inPlaceOf(sentence, b, a)
			}
		}
	}
	return false
}

// placesOnce fills m.at with the places, in the order of the claim, of its content words that stand
// once in it and once in a sentence; it reports whether the sentence has all of them.
func (m *matcher) placesOnce(sentence []words.Word) bool {
	m.at = m.at[:0]
	for i := range m.claim {
		h := m.claim[i].Hash
		if !m.content[i] || count(m.claim, h) > 1 {
			continue
		}
		switch count(sentence, h) {
		case 0:
			return false
		case 1:
			m.at = append(m.at, int32(indexOf(sentence, h)))
		}
	}
	return true
}

// changePlaces reports whether the first u and the last v of a list stand in each other's place, by
// the order that it should have.
func changePlaces(list, order []int32, u, v int) bool {
	n := len(list)
	return slices.Equal(list[:u], order[n-u:]) && slices.Equal(list[n-v:], order[:v]) &&
		slices.Equal(list[u:n-v], order[v:n-u])
}

// minExchanged is how many words that stand once have to be compared; our choice.
const minExchanged = 4

func count(list []words.Word, hash uint64) (n int) {
	for i := range list {
		if list[i].Hash == hash {
			n++
		}
	}
	return n
}

func (*matcher) bothNames(sentence []words.Word, at []int32) bool {
	return !slices.ContainsFunc(at, func(i int32) bool { return !sentence[i].Has(words.Name) })
}

// inPlaceOf reports whether the words at some places of the sentence stand in the claim behind, or
// before, the word that others stand behind or before in the sentence.
func (m *matcher) inPlaceOf(sentence []words.Word, moved, others []int32) bool {
	from, to := indexOf(m.claim, sentence[moved[0]].Hash), indexOf(m.claim, sentence[moved[len(moved)-1]].Hash)
	first, last := int(others[0]), int(others[len(others)-1])
	if leads[m.claim[from].Hash] {
		return false
	}
	if own := int(moved[0]); from > 0 && own > 0 && m.claim[from-1].Has(words.Stop) &&
		m.claim[from-1].Hash == sentence[own-1].Hash && !articles[m.claim[from-1].Hash] {
		return false // it was moved with its preposition
	}
	return from > 0 && first > 0 && m.claim[from-1].Hash == sentence[first-1].Hash ||
		same(next(m.claim, to, 1), next(sentence, last, 1)) || same(next(m.claim, from, -1), next(sentence, first, -1))
}
