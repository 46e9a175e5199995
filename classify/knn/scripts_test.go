package knn

import (
	"context"
	"testing"
)

// blindEmbed is a model that finds all texts in other scripts alike.
func blindEmbed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		if out[i] = vectorOf(t); abroad(t) {
			out[i] = vectorOf("the same")
		}
	}
	return out, nil
}

// TestWhatAnEmbeddingDoesNotKnowIsComparedByLetters has examples in Chinese, and requests that share
// words with them or only the language.
func TestWhatAnEmbeddingDoesNotKnowIsComparedByLetters(t *testing.T) {
	t.Parallel()
	intents := []Intent{
		{Name: "leave", Examples: []string{"我还有多少天年假", "下周我想请三天假", "怎么申请产假", "没用完的年假可以留到明年吗"}},
		{Name: "expense", Examples: []string{"差旅费怎么报销", "酒店费用还没有报销", "出租车发票报销", "报销要谁审批"}},
	}
	o := DefaultOptions()
	o.Latin = true
	x, err := New(t.Context(), intents, o, blindEmbed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Add(t.Context(), "leave", []string{"年假怎么算"}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"年假可以请几天": "leave", "酒店发票怎么报销": "expense", "帮我翻译这句话": "", "讲个笑话": "",
		"What is a joke?": "",
	} {
		v, _ := blindEmbed(t.Context(), []string{text})
		if r, err := x.Lookup(text, v[0]); err != nil || r.Intent != want {
			t.Errorf("%s: %+v, %v; want %q", text, r, err, want)
		}
	}
}

func TestTextsOfAnotherScript(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"How many days?": false, "Où est la gare ?": false, "我的 VPN 断线了": true, "VPN 断": false, "안녕": true, "привет": true,
		"12:30": false, "": false, "x² + y²": false,
	} {
		if abroad(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
