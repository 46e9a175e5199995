package question_test

import (
	"os"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/memory/cache/question"
)

// compare reads two questions and compares them.
func compare(x, y string) question.Difference {
	var a, b question.Reading
	a.Read(x)
	b.Read(y)
	return question.Compare(&a, &b)
}

func TestQuestionsWithAnotherAnswerDiffer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		a, b string
		want question.Difference
	}{
		{"How do I turn on dark mode?", "How do I turn off dark mode?", question.Word},
		{"What is 15% of 240?", "What is 18% of 240?", question.Number},
		{"What is 3.11?", "What is 311?", question.Number},
		{"Are two eggs enough?", "Are 3 eggs enough?", question.Number},
		{"Solve x + 4 = 9", "Solve x - 4 = 9", question.Number},
		{"Why does it compile?", "Why doesn't it compile?", question.Negation},
		{"Why can't I log in here?", "Why can I log in here?", question.Negation},
		{"Can I take it with milk?", "Can I take it without milk?", question.Negation},
		{"When was Mozart born?", "Where was Mozart born?", question.Asked},
		{"Can I cancel my order?", "How can I cancel my order?", question.Asked},
		{"What is my name?", "What is your name?", question.Owner},
		{"What is the capital of Austria?", "What is the capital of Australia?", question.Word},
		{"What is the fee at terminal A?", "What is the fee at terminal B?", question.Word},
		{"Is Java faster than Go?", "Is Go faster than Java?", question.Order},
		{"What is 7 to the power of 3?", "What is 3 to the power of 7?", question.Order},
		{"How do I convert a PDF to a picture?", "How do I convert a picture to a PDF?", question.Order},
		{"What is another word for big?", "What is another word for large?", question.Word},
		{`What does "the" mean?`, `What does "a" mean?`, question.Word},
		{"Wie schalte ich das WLAN ein?", "Wie schalte ich das WLAN aus?", question.Word},
		{"什么是猫", "什么是狗", question.Word},
		{"how much vitamin c do i need", "how much vitamin d do i need", question.Word},
		{"How much vitamin c do I need?", "How much vitamin d do I need?", question.Word},
		{"what is hepatitis a", "what is hepatitis", question.Word},
		{"how do i sort an array in c", "how do i sort an array", question.Word},
		{"How do I convert 5 m to ft?", "How do I convert 5 ft to m?", question.Order},
		{"how many grams are in 5 l of milk", "how many grams are in 5 t of milk", question.Word},
		{"how does an or gate work", "how does an and gate work", question.Word},
		{"explain the in operator of sql", "explain the is operator of sql", question.Word},
		{"Which cheeses have no lactose but casein?", "Which cheeses have lactose but no casein?", question.Negation},
		{"Which countries have no army but a navy?", "Which countries have an army but no navy?", question.Negation},
		{"How many inches are in 3 feet?", "How many feet are in 3 inches?", question.Order},
		{"how many nickels are in a dollar", "how many dollars are in a nickel", question.Order},
		{"Who is older than Tom and Jerry?", "Who is older than Tom or Jerry?", question.Word},
		{"list users with name and email", "list users with name or email", question.Word},
		{"Wer isst Fisch und Fleisch?", "Wer isst Fisch oder Fleisch?", question.Word},
		{"How many gallons are 1,5 litres?", "How many gallons are 15 litres?", question.Number},
		{"What is the derivative of x²?", "What is the derivative of x³?", question.Number},
		{"What is A ∪ B?", "What is A ∩ B?", question.Number},
		{"How much is ½ of 8?", "How much is ¼ of 8?", question.Number},
		{"What does 👍 mean?", "What does 👎 mean?", question.Number},
		{"What is ¬A?", "What is A?", question.Number},
		{"How much is 5‰ of 1000?", "How much is 5 of 1000?", question.Number},
		{"What is (1+2)*3?", "What is 1+2*3?", question.Number},
		{"What is 2*(3+4)?", "What is (2*3)+4?", question.Order},
		{"What is a - b?", "What is b - a?", question.Order},
		{"Solve a - b = c", "Solve a b = c", question.Number},
		{"What is a/b?", "What is b/a?", question.Order},
		{"What is f(x+1)?", "What is f(x)+1?", question.Order},
		{"What is f'(x)?", "What is f(x)?", question.Number},
		{"What is the value of 5!?", "What is the value of 5?", question.Number},
		{"What is n! over k?", "What is n over k?", question.Number},
		{"What does :) mean?", "What does :( mean?", question.Number},
		{"What does rm -rf ./tmp do?", "What does rm -rf /tmp do?", question.Number},
		{"What does rm ./* do?", "What does rm /* do?", question.Number},
		{"What does foo.bar mean?", "What does foo bar mean?", question.Number},
		{"What is x_1?", "What is x 1?", question.Number},
		{"What does grep -v do?", "What does grep -V do?", question.Word},
		{"How do I undo git branch -d?", "How do I undo git branch -D?", question.Word},
		{"How many bytes is 5 Mb?", "How many bytes is 5 MB?", question.Word},
		{"How many bytes is 5Mb?", "How many bytes is 5MB?", question.Number},
		{"How much is 5 mW in watts?", "How much is 5 MW in watts?", question.Word},
		{"What is mW in watts?", "What is MW in watts?", question.Word},
		{"What is the density of CO?", "What is the density of Co?", question.Word},
		{"", "", question.Long},
		{strings.Repeat("why ", 400), strings.Repeat("why ", 400), question.Long},
		{strings.Repeat("tower ", 70), strings.Repeat("tower ", 70), question.Long},
	}
	for _, tt := range tests {
		if got := compare(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: %v, want %v", tt.a, tt.b, got, tt.want)
		}
		if got := compare(tt.b, tt.a); got != tt.want {
			t.Errorf("%q and %q: %v, want %v", tt.b, tt.a, got, tt.want)
		}
	}
}

func TestQuestionsInOtherWordsAreTheSame(t *testing.T) {
	t.Parallel()
	for _, tt := range [][2]string{
		{"What's the capital of France?", "what is the capital of france"},
		{"Could you please tell me how tall the tower is?", "What is the height of the tower?"},
		{"How do I install it on a Mac?", "Steps for installing it on a Mac"},
		{"How do I remove a user?", "How can I delete users?"},
		{"In which year was Goethe born?", "When was Goethe born?"},
		{"How do I get to the airport from the centre?", "What's the way from the centre to the airport?"},
		{"What is the difference between TCP and UDP?", "What is the difference between UDP and TCP?"},
		{"What is 1,000 times 3?", "What is 1000 times three?"},
		{"What is DNS?", "what is dns"},
		{"What is the pH of water?", "what is the ph of water"},
		{"How do I use Node.js?", "how can I use node.js"},
		{"How do I install Python (on Windows)?", "How do I install Python on Windows?"},
		{"Why is C++ fast?", "why is (C++) fast?!"},
		{"How fast is 100 Mbps?", "how fast is 100 mbps?"},
		{"How long does a copy of 5 GB take?", "how long does a copy of 5 gb take?"},
		{"How much is 250 ML of milk?", "How much is 250 ml of milk?"},
		{"What is 12,34,567 in words?", "What is 1234567 in words?"},
		{"Who makes Windows®?", "Who makes Windows?"},
		{"What is 2 PM in UTC?", "What is 2 pm in UTC?"},
		{"Which file(s) do I need?", "which file(s) do I need"},
		{"What does the U.S. export?", "what does the U.S. export"},
		{"Is a visa required?", "Is a visa needed?"},
		{"Wie viele Einwohner hat Köln?", "Wie viele Menschen leben in Köln?"},
		{"How much vitamin C do I need?", "how much vitamin c do i need"},
		{"Combien d'oeufs y a-t-il dans l'eau ?", "combien d’oeufs y a-t-il dans l’eau"},
		{"Why does my car not start?", "Why doesn't my car start?"},
		{"What are the symptoms of measles in children?", "What are measles symptoms in children?"},
		{"What do tea and coffee cost?", "What do tea, coffee cost?"},
		{"什么是猫", "什么是猫"},
	} {
		if got := compare(tt[0], tt[1]); got != question.Same {
			t.Errorf("%q and %q: %v, want same", tt[0], tt[1], got)
		}
	}
}

// TestPairsByHand holds the lexicon alone, without an embedding, to the pairs that the cache is
// measured on.
func TestPairsByHand(t *testing.T) {
	t.Parallel()
	for _, l := range pairs(t, "minimal_pairs.tsv") {
		if compare(l[1], l[2]) == question.Same {
			t.Errorf("%s: %q and %q are taken for the same", l[0], l[1], l[2])
		}
	}
	same, list := 0, pairs(t, "paraphrases.tsv")
	for _, l := range list {
		if compare(l[0], l[1]) == question.Same {
			same++
		}
	}
	t.Logf("%d of %d paraphrases are seen", same, len(list))
	if same < len(list)*65/100 {
		t.Errorf("%d of %d paraphrases are seen, want 65 %%", same, len(list))
	}
}

// pairs reads a file of pairs, tab-separated.
func pairs(tb testing.TB, name string) [][]string {
	tb.Helper()
	data, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	var out [][]string
	for l := range strings.Lines(string(data)) {
		out = append(out, strings.Split(strings.TrimSuffix(l, "\n"), "\t"))
	}
	return out
}

func TestACloneOutlivesItsOriginal(t *testing.T) {
	t.Parallel()
	var r, again question.Reading
	r.Read("What is the capital of Peru?")
	c := r.Clone()
	r.Read("Who wrote the longest novel of all?")
	again.Read("Which city is the capital of Peru?")
	if d := question.Compare(c, &again); d != question.Same {
		t.Errorf("the clone is %v, want same", d)
	}
}

func FuzzCompare(f *testing.F) {
	f.Add("What's the capital of France?", "what is the capital of france")
	f.Add("don't \"can't ’s ’", "it's 3.1.4 %-5 +x^2 猫猫 \xff")
	f.Add("how many people live in the", "what is a my your the")
	f.Fuzz(func(t *testing.T, x, y string) {
		var a, b question.Reading
		a.Read(x)
		b.Read(y)
		if p, q := question.Compare(&a, &b), question.Compare(&b, &a); (p == question.Same) != (q == question.Same) {
			t.Fatalf("%q and %q: %v one way, %v the other", x, y, p, q)
		}
		c := a.Clone()
		if d := question.Compare(&a, c); d != question.Same && d != question.Long {
			t.Fatalf("%q and its clone: %v", x, d)
		}
		b.Read(x)
		if d := question.Compare(c, &b); d != question.Same && d != question.Long {
			t.Fatalf("%q read twice: %v", x, d)
		}
	})
}

func TestReadingAndComparingDoNotAllocate(t *testing.T) {
	if testkit.Race {
		t.Skip("counts of allocations differ under the race detector")
	}
	var a, b question.Reading
	b.Read("Which city is the capital of Peru?")
	a.Read("What is the capital of Peru, please? I'd like to know exactly.")
	if n := testing.AllocsPerRun(100, func() {
		a.Read("What's the capital of Peru, please?")
		question.Compare(&a, &b)
	}); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkRead(b *testing.B) {
	var r question.Reading
	b.ReportAllocs()
	for b.Loop() {
		r.Read("How can I improve the speed of my laptop when it has been running for 3 days?")
	}
}

func BenchmarkCompare(b *testing.B) {
	var x, y question.Reading
	x.Read("How can I improve the speed of my laptop when it has been running for 3 days?")
	y.Read("How do I make my laptop faster if it has been running for three days?")
	b.ReportAllocs()
	for b.Loop() {
		question.Compare(&x, &y)
	}
}
