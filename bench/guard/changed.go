package main

import (
	"regexp"
	"slices"
	"strings"
)

// digits matches digits in a text that are an amount or a year, independent of the product's own
// reader.
var digits = regexp.MustCompile(`(?:^|[\s($€£])(\d[\d,]*(?:\.\d+)?)(?:[\s)%;,]|\.(?:\s|$)|$)`)

// sentenceEnd splits running text roughly into sentences.
var sentenceEnd = regexp.MustCompile(`[.!?]\s+|\n+`)

// changed makes claims from sentences with numbers, no more than most of a kind: true ones, verbatim and
// after a few added words; and false ones with a digit changed, with two numbers of the sentence
// exchanged, and with a number replaced by one of another sentence.
func changed(texts []string, most int) []pair {
	kinds := map[string][]pair{}
	for _, text := range texts {
		taken := 0
		var last string // number of a sentence before
		for _, s := range split(text) {
			at := numbersIn(s)
			if len(at) == 0 || taken == 6 {
				continue
			}
			taken++
			add := func(how, label, answer string) {
				if answer != "" && len(kinds[how]) < most {
					kinds[how] = append(kinds[how], pair{Facts: facts{text}, Answer: answer, Label: label, Source: how})
				}
			}
			add("true, word for word", supported, s)
			add("true, behind other words", supported, "According to the text, "+strings.ToLower(s[:1])+s[1:])
			first := s[at[0][0]:at[0][1]]
			add("a digit changed", unsupported, replace(s, at[0], digit(first, text)))
			if two := pairOf(s, at); two != nil {
				a, b := two[0], two[1]
				add("two numbers exchanged", unsupported, s[:a[0]]+s[b[0]:b[1]]+s[a[1]:b[0]]+s[a[0]:a[1]]+s[b[1]:])
			}
			if last != "" && last != first && len(last) == len(first) && !strings.Contains(s, last) {
				add("number of another sentence", unsupported, replace(s, at[0], last))
			}
			last = first
		}
	}
	var list []pair
	for _, how := range []string{"true, word for word", "true, behind other words", "a digit changed", "two numbers exchanged", "number of another sentence"} {
		list = append(list, kinds[how]...)
	}
	return list
}

// split returns the sentences of 8 to 40 words that begin with a capital.
func split(text string) (list []string) {
	for _, s := range sentenceEnd.Split(text, -1) {
		s = strings.TrimSpace(s)
		n := len(strings.Fields(s))
		if n >= 8 && n <= 40 && s[0] >= 'A' && s[0] <= 'Z' && !strings.ContainsAny(s, "{}<>|`[]=") {
			list = append(list, s+".")
		}
	}
	return list
}

// numbersIn returns the positions of numbers with at least two digits.
func numbersIn(s string) (at [][]int) {
	for from := 0; ; {
		m := digits.FindStringSubmatchIndex(s[from:])
		if m == nil {
			return at
		}
		place := []int{from + m[2], from + m[3]}
		if strings.HasSuffix(s[place[0]:place[1]], ",") {
			place[1]--
		}
		if place[1]-place[0] > 1 {
			at = append(at, place)
		}
		from = place[1]
	}
}

// pairOf returns two different numbers of similar form in a sentence; nil if there are none.
func pairOf(s string, at [][]int) [][]int {
	for i := range at {
		for _, b := range at[i+1:] {
			x, y := s[at[i][0]:at[i][1]], s[b[0]:b[1]]
			if x != y && len(x) == len(y) && !slices.ContainsFunc([]string{"-", "–", " to ", " and "}, func(j string) bool { return s[at[i][1]:b[0]] == j }) {
				return [][]int{at[i], b}
			}
		}
	}
	return nil
}

// digit returns the number with its second digit changed so that the text does not contain the
// result; empty if there is none.
func digit(n, text string) string {
	at := strings.LastIndexAny(n[:2], "0123456789")
	for add := byte(3); add < 8; add++ {
		changed := n[:at] + string('0'+(n[at]-'0'+add)%10) + n[at+1:]
		if !strings.Contains(text, changed) {
			return changed
		}
	}
	return ""
}

func replace(s string, at []int, by string) string {
	if by == "" {
		return ""
	}
	return s[:at[0]] + by + s[at[1]:]
}
