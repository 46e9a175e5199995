package pii

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestAPartOfAFullNameIsFoundElsewhere(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct{ text, guess, want string }{
		{
			"Rachel Okonjo wrote. Hello Rachel, Okonjo's here.", "Rachel Okonjo",
			"PERSON:Rachel Okonjo,PERSON:Rachel,PERSON:Okonjo",
		},
		{"Tom: I am late. Tom Whitfield sits there", "Tom Whitfield", "PERSON:Tom,PERSON:Tom Whitfield"},
		{"Will Baker says he will. Will it rain? Ask the Baker.", "Will Baker", "PERSON:Will Baker"},
		{"Paris Okonjo flew to Paris.", "Paris Okonjo", "PERSON:Paris Okonjo"},
		{"Rachel Okonjo's Rachelle and Rachels", "Rachel Okonjo", "PERSON:Rachel Okonjo"},
		{"Rachel wrote to RachelOkonjo and Rachel", "Rachel", "PERSON:Rachel"},
		{"Rachel Okonjo wrote.\n\nfunc (r *Rachel) Do() { return nil }\n", "Rachel Okonjo", "PERSON:Rachel Okonjo"},
		{"Steve Jobs left. Jobs and Builds", "Steve Jobs", "PERSON:Steve Jobs"},
		{"Lea Keller wohnt im Keller.", "Lea Keller", "PERSON:Lea Keller"},
		{"Wir treffen Jonas Mai im Mai, sagt Jonas", "Jonas Mai", "PERSON:Jonas Mai,PERSON:Jonas"},
		{"Jan Kowalski pisze. Jan tu jest", "Jan Kowalski", "PERSON:Jan Kowalski,PERSON:Jan"},
	} {
		if got := guessed(t, d, tt.text, tt.guess, "B-PERSON"); got != tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestTheFirstHalfOfAHyphenatedNameIsTakenWithIt(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct{ text, guess, want string }{
		{"we met Ana-Maria Duarte there", "Maria Duarte", "PERSON:Ana-Maria Duarte"},
		{"a non-Maria Duarte thing", "Maria Duarte", "PERSON:Maria Duarte"},
		{"IT-Maria Duarte left", "Maria Duarte", "PERSON:Maria Duarte"},
	} {
		if got := guessed(t, d, tt.text, tt.guess, "B-PERSON"); got != tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestNobodyWaitsForNamesThatComeAgain(t *testing.T) {
	text := "Rachel Okonjo " + strings.Repeat("and Rachel ", 1<<14)
	spans := []Span{{Type: Person, End: len("Rachel Okonjo"), Score: 1}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := again(ctx, text, spans); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want a cancellation", err)
	}
}
