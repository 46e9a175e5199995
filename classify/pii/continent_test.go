package pii

import (
	"strings"
	"testing"
)

func TestDatesAndAddressesOfTheContinent(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"Geboren 1.4.80.", "DATE_TIME:1.4.80"},
		{"Anna, geb. 3.5.71, wohnt hier", "DATE_TIME:3.5.71"},
		{"Geburtsdatum: 12.11.65", "DATE_TIME:12.11.65"},
		{"nato il 3.5.71", "DATE_TIME:3.5.71"},
		{"geb. am 3. Mai 1971", "DATE_TIME:3. Mai 1971"},
		{"geboren am 5. Feber 1988", "DATE_TIME:5. Feber 1988"},
		{"Version 1.4.80 ist erschienen.", ""},
		{"Siehe Abschnitt 3.4.12.", ""},
		{"Domkloster 4, 50667 Köln", "STREET_ADDRESS:Domkloster 4, 50667 Köln"},
		{"Ich wohne Am Markt 7, 99084 Erfurt.", "STREET_ADDRESS:Am Markt 7, 99084 Erfurt"},
		{"Hauptstr. 12a, D-80331 München", "STREET_ADDRESS:Hauptstr. 12a, D-80331 München"},
		{"in der Mariahilfer Straße 123/4/5, 1060 Wien", "STREET_ADDRESS:Mariahilfer Straße 123/4/5, 1060 Wien"},
		{"Bahnhofstrasse 12, CH-8001 Zürich", "STREET_ADDRESS:Bahnhofstrasse 12, CH-8001 Zürich"},
		{"Konrad-Adenauer-Straße 7", "STREET_ADDRESS:Konrad-Adenauer-Straße 7"},
		{"Rue du Rhône 14, 1204 Genève", "STREET_ADDRESS:Rue du Rhône 14, 1204 Genève"},
		{"Rechnung 4, 12345 Euro", ""},
		{"siehe Tabelle 4, 10115 Datensätze", ""},
		{"Table 3, 15360 Rows; on Windows Server 2019, 17763 Builds; Port 8080, 65535 Connections", ""},
		{"On May 4, 2024 Berlin was full.", "DATE_TIME:May 4, 2024"},
		{"Diese Straße 3 mal sperren", ""},
		{"Constr. 2 and Instr. 14, Distr. 7", ""},
	} {
		if got := strings.Join(found(tt.text, Patterns(tt.text, nil)), ","); got != tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestThePostcodeBeforeATownIsFound(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct{ text, guess, kind, want string }{
		{"50667 Köln", "Köln", "GPE", "ZIP_CODE:50667,GPE:Köln"},
		{"Die Firma sitzt in 50667 Köln.", "Köln", "GPE", "ZIP_CODE:50667,GPE:Köln"},
		{"CH-8001 Zürich", "Zürich", "GPE", "ZIP_CODE:CH-8001,GPE:Zürich"},
		{"Ort: 1010 Wien", "Wien", "GPE", "ZIP_CODE:1010,GPE:Wien"},
		{"Im Jahr 2024 Berlin besuchen", "Berlin", "GPE", "GPE:Berlin"},
		{"Es kamen 50000 Berliner nach 30000 Köln", "Köln", "GPE", "GPE:Köln"},
		{"A-1010 Wien, Stephansplatz 3", "-1010 Wien, Stephansplatz 3", "STREET_ADDRESS", "STREET_ADDRESS:A-1010 Wien, Stephansplatz 3"},
		{"Kundennummer 12345", "Kundennummer 12345", "STREET_ADDRESS", ""},
		{"Mein Konto ist leer.", "Konto", "PERSON", ""},
		{"am 3.5.71 kam er", "3", "DATE_TIME", "DATE_TIME:3.5.71"},
	} {
		toks := tokens(t, tt.text, []piece{{tt.guess, "B-" + tt.kind, 0.95}})
		got := strings.Join(found(tt.text, d.Fuse(tt.text, Patterns(tt.text, nil), toks, nil)), ",")
		if got != tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}
