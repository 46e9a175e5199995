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
			rows[i] = head.Row{Text: fmt.Sprint("text ", i), Labels: []string{fmt.Sprint(i % 3)}}
			folds[i] = i % 7
		}
		count := 0
		for _, in := range intentsOf(rows, folds, 0) {
			count += len(in.Examples)
		}
		if least := min(n, knn.MaxExamples) / 3; count < least || count > knn.MaxExamples {
			t.Errorf("of %d rows %d are examples, want %d to %d", n, count, least, knn.MaxExamples)
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
