package pii

import "testing"

func TestNamesBehindTitlesOfAnyCaseAreFound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"Beste mevrouw De Vries, dank u.", "De Vries"},
		{"Geachte heer Van den Berg,", "Van den Berg"},
		{"de heer van der Laan belde", "van der Laan"},
		{"dott.ssa Elisa Fontana", "Elisa Fontana"},
		{"la Dra. Beatriz Solís en dos semanas", "Beatriz Solís"},
		{"a Panią Moniką Lewandowską.", "Moniką Lewandowską"},
		{"lek. Paweł Szymański", "Paweł Szymański"},
		{"Class 4B, Room 12, Ms Holloway", "Holloway"},
		{"Sehr geehrter Herr Kollege Dr. Brandstetter,", "Brandstetter"},
		{"Liebe Frau Krüger Bescheid kommt", "Krüger"},
		{"seen by Dr J. K. Marsh today", "J. K. Marsh"},
		{"Dear Mr O'Neill, thanks", "O'Neill"},

		{"Geachte mevrouw Van der Meer,", "Van der Meer"},
		{"mevrouw van der Meer kwam", "van der Meer"},
		{"met dokter Smeets op 12 juni", "Smeets"},
		{"hola, soy Marisol Paz, necesito", "Marisol Paz"},
		{"Buongiorno, sono Giulia.", "Giulia"},
		{"do Pani Prezes Kowalskiej, Herrn Oberbürgermeister Krause", "Prezes Kowalskiej,Oberbürgermeister Krause"},
		{"avv. Rossi scrive a geom. Bianchi", "Rossi,Bianchi"},

		{"CREATE TABLE t (geom Point, avv Value)", ""},
		{"Monsieur le Maire, Madame la Directrice,", ""},
		{"señor Presidente del Gobierno", ""},
		{"Szanowna Pani Prezes, Pani Dyrektor", ""},
		{"mevrouw Meer weet het", ""},
		{"soy Sauce and I sono Yamaha", ""},
		{"MS Office and Ms Office", ""},
		{"1420 Willow Creek Dr Asheville", ""},
		{"no le digas don nada", ""},
		{"prof Xcode settings", ""},
		{"Herr Direktor kommt", ""},
		{"de heer des huizes", ""},
		{"Mrs President spoke", ""},
		{"Dr. Monday", ""},
	} {
		if got := people(tt.text); got != tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}
