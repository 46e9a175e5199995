package app

import (
	"fmt"
	"strings"
	"testing"

	"signalbox/classify/head"
	"signalbox/classify/knn"
)

func TestNoMoreRowsAreComparedThanPrivateIntentsMayHave(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, knn.MaxExamples, knn.MaxExamples + 1, 2 * knn.MaxExamples} {
		rows, folds := make([]head.Row, n), make([]int, n)
		for i := range rows {
			rows[i] = head.Row{Text: fmt.Sprint("text ", i), Labels: []string{fmt.Sprint(i % 2)}}
			folds[i] = i / 2 % 5
		}
		count, intents := 0, intentsOf(rows, folds, 0)
		for _, in := range intents {
			count += len(in.Examples)
		}
		if want := min(n-n/5, knn.MaxExamples); len(intents) != 2 || count < want-1 || count > want {
			t.Errorf("of %d rows %d of %d labels are examples, want %d of 2", n, count, len(intents), want)
		}
	}
}

func TestRowsThatAreTooLongForPrivateIntentsAreNotCompared(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", knn.MaxExampleBytes)
	rows := []head.Row{
		{Text: "a " + long, Labels: []string{"a"}},
		{Text: "b " + long, Labels: []string{"b"}},
		{Text: "short", Labels: []string{"a"}},
	}
	got, err := new(App).compare(t.Context(), rows, &head.Trial{Folds: []int{0, 1, 1}}, nil)
	if got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}
