package question_test

import (
	"testing"

	"signalbox/memory/cache/question"
)

// TestTenseModalityAndRoles holds pairs that differ in nothing but tense, modality, direction or
// who does what to whom, and paraphrases of the same kind. The lines of roles.tsv were written
// before the comparison looked at any of these, those of roles_more.tsv after.
func TestTenseModalityAndRoles(t *testing.T) {
	t.Parallel()
	same, hits := 0, 0
	for _, l := range append(pairs(t, "roles.tsv"), pairs(t, "roles_more.tsv")...) {
		d, back := compare(l[1], l[2]), compare(l[2], l[1])
		switch {
		case l[0] == "other" && (d == question.Same || back == question.Same):
			t.Errorf("%q and %q are taken for the same", l[1], l[2])
		case l[0] == "same":
			same++
			if d == question.Same {
				hits++
			} else {
				t.Logf("not seen (%v): %q and %q", d, l[1], l[2])
			}
		}
	}
	if hits < 28 {
		t.Errorf("%d of %d paraphrases are seen, want 28", hits, same)
	}
}

func TestWhatIsNoDifferenceOfOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range [][2]string{
		{"In Excel, how do I freeze a row?", "How do I freeze a row in Excel?"},
		{"Who was the ceiling painted by?", "Who painted the ceiling?"},
		{"When does the summer semester start?", "When is the beginning of the summer semester?"},
		{"Which desert is the largest on the planet?", "What is the biggest desert on the planet?"},
		{"What's Chad's capital?", "What is the capital of Chad?"},
		{"What language do they speak in Austria?", "Which language is spoken in Austria?"},
		{"How do I fly to Rome from Oslo?", "How can I fly from Oslo to Rome?"},
		{"What does 'carpe diem' mean?", "What is the meaning of 'carpe diem'?"},
		{"Where are the users' files kept?", "Where are the users' files stored?"},
	} {
		if got := compare(tt[0], tt[1]); got != question.Same {
			t.Errorf("%q and %q: %v, want same", tt[0], tt[1], got)
		}
	}
}

func TestMoodsAndQuotations(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want question.Difference
	}{
		{"May I sign the form?", "Must I sign the form?", question.Mood},
		{"Wann kann ich kündigen?", "Wann muss ich kündigen?", question.Mood},
		{"When will it rain?", "When did it rain?", question.Mood},
		{"When'll the shop open?", "When does the shop open?", question.Mood},
		{"Why won't the shop open?", "Why doesn't the shop open?", question.Mood},
		{"Is the park open in May?", "Is the park open?", question.Word},
		{"Translate 'I am hungry' into French.", "Translate 'Am I hungry' into French.", question.Order},
		{"How much does Ben owe me?", "How much do I owe Ben?", question.Order},
		{"Who does Anna work for?", "Who works for Anna?", question.Order},
		{"Wer hat Bayer gekauft?", "Wen hat Bayer gekauft?", question.Order},
	} {
		if got := compare(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}
