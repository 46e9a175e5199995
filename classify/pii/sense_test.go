package pii

import (
	"testing"
)

func TestNumbersBesideWordsAreNoAddressesOrAges(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct {
		text, guess, kind string
		want              bool
	}{
		{"Constr. 2 Steel Beam", "Constr. 2", StreetAddress, false},
		{"Lot 4            840,00", "Lot 4", StreetAddress, false},
		{"Pose de 12 m² pour vous", "12 m²", StreetAddress, false},
		{"Fehlercode 0x61, Firmware", "0x61", StreetAddress, false},
		{"PO 778120  Lot 2024", "778120  Lot", StreetAddress, false},
		{"quantità 4, prezzo unitario", "quantità 4, prezzo unitario", StreetAddress, false},
		{"Aktenzeichen 4 C 221/23 am Gericht", "4 C 221/23", StreetAddress, false},
		{"Liebe Eltern der Klasse 3a,", "Klasse 3a", StreetAddress, false},
		{"Se adjunta el Anexo 4.", "Anexo 4", StreetAddress, false},
		{"Exmo. Senhor doutor", "Senhor", Person, false},
		{"el plan para 12 meses se presenta entre todos", "12", Age, false},
		{"Pose de carrelage pour vous", "Pose de carrelage", StreetAddress, false},
		{"né le 12 mars, n° de sécurité sociale", "n° de sécurité", StreetAddress, false},
		{"am markt 7 in erfurt", "am markt 7", StreetAddress, true},
		{"we live at Lindenhof 4 now", "Lindenhof 4", StreetAddress, true},
		{"send it to 22 acacia avenue please", "22 acacia avenue", StreetAddress, true},
		{"abito in via garibaldi 12 da ieri", "via garibaldi 12", StreetAddress, true},
		{"Hauptstr. 12 in Wees", "Hauptstr. 12", StreetAddress, true},

		{"Joost zet de server om naar versie 12.", "12", Age, false},
		{"El cliente dispone de 10 días hábiles para la respuesta.", "10", Age, false},
		{"bir nuklite Z = 17 ve bu", "17", Age, false},
		{"she said age = 42 in the form", "42", Age, true},
		{"it says page = 42 in the form", "42", Age, false},
		{"Unfall vom 12. Januar", "12", Age, false},
		{"and she is 12. (so she says)", "12", Age, true},
		{"and she is 12. ", "12", Age, true},
		{"Ella tiene 34 años y vive con su hermana.", "34", Age, true},
		{"she is 34 and lives here", "34", Age, true},
		{"la paciente, 67 , que vive con su hermana", "67", Age, true},

		{"Kundennr. 4471120  -96,40", "4471120  -96", PhoneNumber, false},
		{"call 447 1120 96 now", "447 1120 96", PhoneNumber, true},
	} {
		toks := tokens(t, tt.text, []piece{{tt.guess, "B-" + tt.kind, 0.95}})
		if got := d.Fuse(tt.text, nil, toks, nil); (len(got) > 0) != tt.want {
			t.Errorf("%q, guess %q gave %q", tt.text, tt.guess, scored(tt.text, got))
		}
	}
}

func TestUnitsOfMachinesAreNoTowns(t *testing.T) {
	for _, text := range []string{"Error in Main 12, 40960 Bytes allocated", "Worker 3, 15361 Requests served"} {
		if got := Patterns(text, nil); len(got) > 0 {
			t.Errorf("%q gave %q", text, found(text, got))
		}
	}
}

func TestTheTownBehindAnAddressOfTheModelIsTakenWithIt(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct{ text, guess, want string }{
		{"dla Ewy, Lipowa 8, 15-427 Białystok.", "Ewy, Lipowa 8, 15-427", "Ewy, Lipowa 8, 15-427 Białystok"},
		{"bei uns, Lindenhof 4, 24999 Wees", "Lindenhof 4", "Lindenhof 4, 24999 Wees"},
		{"bei uns, Lindenhof 4, 24999 und mehr", "Lindenhof 4, 24999", "Lindenhof 4, 24999"},
		{"bei uns, Lindenhof 4, 2024 Berlin", "Lindenhof 4", "Lindenhof 4"},
	} {
		if got := guessed(t, d, tt.text, tt.guess, "B-STREET_ADDRESS"); got != "STREET_ADDRESS:"+tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}
