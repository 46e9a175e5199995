package lexical

import (
	"strings"
	"unicode/utf8"

	"signalbox/internal/script"
)

// particles are what Korean writes right behind a noun: its case, its place in the sentence and the
// copula.
//
//nolint:gochecknoglobals // constant table
var particles = strings.Fields("은 는 이 가 을 를 의 에 에서 에게 에게서 한테 께 께서 와 과 랑 이랑 하고 도 만 로 으로 " +
	"로서 으로서 로써 으로써 부터 까지 마저 조차 보다 처럼 같이 마다 나 이나 든지 이든지 라도 이라도 라고 이라고 라는 " +
	"이라는 란 이란 들 님 씨 밖에 대로 만큼 뿐 이다 입니다 입니까 인 인가 인가요 인데 이고 이며 이면 이야 이에요 예요 " +
	"이라 이라면 라면 요")

// maxParticles is the maximum length of Hangul read for particles, in bytes: eight syllables.
const maxParticles = 8 * len("은")

// ends reports whether a phrase may end before byte i of text: at a boundary, or before particles
// that end at one.
func ends(text []byte, i int) bool {
	if boundary(text, i) {
		return true
	}
	to := i
	for to-i <= maxParticles {
		r, n := utf8.DecodeRune(text[to:])
		if !script.IsHangul(r) {
			break
		}
		to += n
	}
	return to > i && to-i <= maxParticles && boundary(text, to) && onlyParticles(string(text[i:to]))
}

// onlyParticles reports whether s consists of particles: 에서는, 들에게도.
func onlyParticles(s string) bool {
	if s == "" {
		return true
	}
	for _, p := range particles {
		if rest, ok := strings.CutPrefix(s, p); ok && onlyParticles(rest) {
			return true
		}
	}
	return false
}
