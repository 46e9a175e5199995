package check

import (
	"slices"

	"signalbox/stream/evidence/words"
)

//nolint:gochecknoglobals // constant tables
var (
	// mutual are words whose two sides can be swapped without changing the meaning.
	mutual = hashes("and or with against like than next between beside near opposite together versus vs " +
		"distance marry married divorce divorced meet meets met border borders equal equals " +
		"match resemble share join joins joined connect connects connected connecting link " +
		"links linked play plays played face faced fought compete competed adjacent neighbour " +
		"neighbor same similar different differ differs und oder mit gegen wie neben zwischen " +
		"verbindet et ou avec contre comme entre relie y o con contra como conecta junto")
	// leads are prepositions that are not stop words; a phrase moves together with them.
	leads = hashes("ab seit gegen ohne durch um bis vor während wegen laut trotz within until since " +
		"during despite through pendant depuis selon durante desde según hacia")
	// passives are forms of "to be"; in the passive voice, subject and object swap places.
	passives = hashes("is are was were be been being ist sind war waren wird werden wurde wurden est sont " +
		"était étaient été es son fue fueron sido")
	// articles do not indicate the role of a noun.
	articles = hashes("the a an his her its their our der die das den dem des ein eine einen le la les un " +
		"une el los las una")
)

var as = hashOf("as") //nolint:gochecknoglobals // constant

// maxExchanged is the maximum number of words in a swapped phrase: a name, or a noun with an
// adjective.
const maxExchanged = 3

// exchanged reports whether the claim has the words of a sentence, except that two words or names
// are swapped: "from Vos to Colby" against "from Colby to Vos". Words that occur twice are ignored.
// A phrase that moved as a whole, for example to the beginning, does not count.
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

// placesOnce fills m.at with the positions in a sentence of the content words that occur once in
// the claim and once in the sentence, in the order of the claim. It reports whether the sentence
// has all content words.
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

// changePlaces reports whether the first u and the last v elements of a list are swapped relative
// to order.
func changePlaces(list, order []int32, u, v int) bool {
	n := len(list)
	return slices.Equal(list[:u], order[n-u:]) && slices.Equal(list[n-v:], order[:v]) &&
		slices.Equal(list[u:n-v], order[v:n-u])
}

// minExchanged is the minimum number of words that occur once; our choice.
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

// inPlaceOf reports whether the words at positions moved of the sentence have, in the claim, the
// neighbour that the words at positions others have in the sentence.
func (m *matcher) inPlaceOf(sentence []words.Word, moved, others []int32) bool {
	from, to := indexOf(m.claim, sentence[moved[0]].Hash), indexOf(m.claim, sentence[moved[len(moved)-1]].Hash)
	first, last := int(others[0]), int(others[len(others)-1])
	if leads[m.claim[from].Hash] {
		return false
	}
	if own := int(moved[0]); from > 0 && own > 0 && m.claim[from-1].Has(words.Stop) &&
		m.claim[from-1].Hash == sentence[own-1].Hash && !articles[m.claim[from-1].Hash] {
		return false // it moved together with its preposition
	}
	return from > 0 && first > 0 && m.claim[from-1].Hash == sentence[first-1].Hash ||
		same(next(m.claim, to, 1), next(sentence, last, 1)) || same(next(m.claim, from, -1), next(sentence, first, -1))
}
