package pii

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestListsOfNamesAndNamesBeforeMails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"Attendees: Priya Raman, Tom Whitfield and Ana-Maria Duarte\n", "Priya Raman,Tom Whitfield,Ana-Maria Duarte"},
		{"Anwesend: Marlies Kern (Vorsitz), Uwe Dahmen, Tarek Al-Sayed", "Marlies Kern,Uwe Dahmen,Tarek Al-Sayed"},
		{"Présents : Mathilde Girard, Karim Benali", "Mathilde Girard,Karim Benali"},
		{"Presentes: Sr. Rui Tavares, Duarte Pinto", "Rui Tavares,Duarte Pinto"}, //nolint:misspell // Portuguese
		{"Aanwezig: Fatima El Amrani, Joost Kuipers", "Fatima El Amrani,Joost Kuipers"},
		{"Presenti: Ugo Conti e Ada Neri e Elio Riva y Ana Sol", "Ugo Conti,Ada Neri,Elio Riva,Ana Sol"},
		{"Attendees: Product Team, Sales Team, Marketing", ""},
		{"Teilnehmer: Vertrieb, Einkauf und Technik", ""},
		{"Attendees: Data Science, Machine Learning and Open Source", ""},
		{"Participants: User Browser, Load Balancer", ""},
		{"Participants: 12 to 14 people, of any age", ""},
		{"Attendees: see the Calendar Page", ""},

		{"Author: Jo Doe <jd@brightfield.com>", "Jo Doe"},
		{"    Reviewed-by: Oskar Nyberg <on@quietforge.io>", "Oskar Nyberg"},
		{`SMTP_FROM="Tanya Brooks <tanya.brooks@ledgerly.com>"`, "Tanya Brooks"},
		{`From: "Doyle, Patricia" <pdoyle77@gmail.com>`, "Doyle, Patricia"},
		{`Cc: Jens Albrecht <j.albrecht@technik-nord.de>, Uwe Kern <kern@technik-nord.de>`, "Jens Albrecht,Uwe Kern"},
		{"From: Acme Billing <billing@acme.com>", ""},
		{"From: Calendar Events <xq@acme.com>", ""},
		{"Mailing List <list@foo.org>, Visual Studio <studio@ms.com>, Best Regards <regards@acme.com>", ""},
		{"Docs Example <jd@brightfield.com>", ""},
		{"vec: Option Some<a@b.com>", ""},

		{
			"INSERT INTO p (id, full_name, city) VALUES (1, 'Monica Reyes', 'Mesa'),\n(2, 'Walter Nguyen', 'x');",
			"Monica Reyes,Walter Nguyen",
		},
		{"insert into p (\"last_name\", email) values ('O''Neill', 'x'), (NULL, 'y'), ('Reyes', now())", "O''Neill,Reyes"},
		{"INSERT INTO p (at, first_name, age) VALUES (now(), 'Monica', 3), (f('a)', 'b'), 'Walter', 4)", "Monica,Walter"},
		{"INSERT INTO p (last_name, dob) VALUES ('D''''Arcy', 'x'), ('Reyes', 'y')", "D''''Arcy,Reyes"},
		{"INSERT INTO p (full_name, city) SELECT name FROM q WHERE (city = 'New York')", ""},
		{"INSERT INTO p (title, body) VALUES ('Monica Reyes', 'x')", ""},
		{"INSERT INTO p (full_name, city) VALUES ($1, $2)", ""},

		{"Employee,Department,Salary\nNadia Rahman,Finance,58000\n", "Nadia Rahman"},
		{"nom,prenom,ville\nMarchand,Thierry,Caen\n", "Marchand,Thierry"},
		{"INSERT INTO c (nombre, apellidos) VALUES ('Gema', 'Lorente Ruiz');", "Gema,Lorente Ruiz"},
		{"nom,prix\nTable Basse,12\n", ""},
		{`INFO benutzer="Lena Fuhrmann" ip=91.12.83.207 start`, "Lena Fuhrmann"},
		{`INFO benutzer="Lena Fuhrmann" start`, ""},
		{"Pacjentka: Halina Nowicka, ur. 12.06.1956", "Halina Nowicka"},
		{"Patient: Stable", ""},
		{"Titulaire : compte joint", ""},
	} {
		if got := people(tt.text); got != tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestDaysOfBirthInColumnsAreFound(t *testing.T) {
	t.Parallel()
	const text = "INSERT INTO p (full_name, dob, made) VALUES ('Monica Reyes', '1979-04-23', '2024-05-06');"
	got := strings.Join(found(text, Patterns(text, nil)), ",")
	if want := "PERSON:Monica Reyes,DATE_TIME:1979-04-23"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestNobodyWaitsForRowsOfSQL(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := scanner{text: "INSERT INTO p (full_name, city) VALUES " + strings.Repeat("('Monica Reyes', 'Mesa'), ", 1<<12)}
	if err := s.inserts(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want a cancellation", err)
	}
}
