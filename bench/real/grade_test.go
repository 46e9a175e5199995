package main

import "testing"

func TestAnswersAreComparedByTheirKind(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		response, answer, kind string
		want                   bool
	}{
		{"18", "18", "number", true},
		{"She sells 16 - 7 = 9 eggs.\nAnswer: $1,800.00", "1800", "number", true},
		{"Answer: 3\n\nNo, wait.\n**Answer: 4 dollars**", "4", "number", true},
		{"Answer: 4\n\nThat is 3 more than 1.", "4", "number", true},
		{"It costs 5.\nSo it is 6", "5", "number", false},
		{"I do not know", "5", "number", false},
		{"Answer: -2", "2", "number", false},
		{"`Answer: [(4, 1), (2, 3)]`", "[(4,1), (2,3)]", "literal", true},
		{"Answer: {\"a\": None}", "{'a': None}", "literal", true},
		{"Answer: 'ab'", "'a'", "literal", false},
		{"Answer: 'a b'", "'ab'", "literal", false},
		{"Answer: ':)'", "':)'", "literal", true},
		{"**Answer:** {'': 1}", "{'': 1}", "literal", true},
		{"Answer: **C**. Because A is wrong", "C", "word", true},
		{"Therefore, the answer is: PlayMusic.", "PlayMusic", "word", true},
		{"**Answer**: 7", "7", "number", true},
		{"answer: playmusic", "PlayMusic", "word", true},
		{"PlayMusic", "PlayMusic", "word", true},
		{"Answer: BookRestaurant", "PlayMusic", "word", false},
		{"", "A", "word", false},
	} {
		if got := right(x.response, x.answer, x.kind); got != x.want {
			t.Errorf("right(%q, %q, %s) = %v", x.response, x.answer, x.kind, got)
		}
	}
}
