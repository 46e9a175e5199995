package pii

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The key of a field is context for its value: the value of "first_name" is a name, whatever it
// looks like. fields reads JSON, XML, YAML, logs and tables for such keys. It favours precision,
// because the name of a file, a tool or a product is not personal: values of a person's key must be
// capitalised words of letters, and a bare "name" requires a full name and another key of a person
// in its record.

// fieldKind is what a key states about its value.
type fieldKind uint8

const (
	noField    fieldKind = iota
	nameField            // a person's name, or a part of one
	anyField             // the name of anything: name, user, customer
	phoneField           // a telephone number
	streetField
	birthField // the day of a birth
	rollField  // a list of full names separated by commas
	fullField  // a key for full names of people
	otherField // no finding itself, but shows that the record describes a person: email, city
)

// fieldKinds are keys, in lower case and without what joins their words.
//
//nolint:gochecknoglobals // constant table
var fieldKinds = func() map[string]fieldKind {
	m := map[string]fieldKind{}
	for _, keys := range []struct {
		kind fieldKind
		list string
	}{
		{nameField, `firstname lastname surname givenname familyname fullname middlename maidenname forename
			customername clientname patientname employeename contactname recipientname sendername
			cardholdername cardholder accountholder holdername ownername billingname shippingname
			guestname studentname passengername vorname nachname familienname prenom prénom
			nomdefamille apellido apellidos cognome achternaam voornaam imię nazwisko`},
		{anyField, `name user customer client contact person employee passenger guest recipient
			sender owner assignee author first last
			benutzer nutzer kunde kundin mieter mieterin utilisateur usuario usuária usuário utente cliente
			gebruiker klant użytkownik klient
			empfänger destinataire destinatario destinatário odbiorca mitarbeiter mitarbeiterin
			empleado empleada employé employée dipendente medewerker pracownik student schüler schülerin élève
			alumno alumna aluno aluna studente leerling uczeń salarié locataire inquilino nom naam nome nombre`},
		{phoneField, `phone phonenumber phoneno mobile mobilenumber mobilephone cell cellphone tel telephone
			telephonenumber fax homephone workphone telefon telefonnummer handy telefono teléfono telefone
			téléphone`},
		{streetField, `street streetaddress streetname addressline1 address1 homeaddress billingaddress
			shippingaddress postaladdress strasse straße rue calle`},
		{otherField, `email emailaddress mail city town zip zipcode postcode postalcode plz age gender sex ssn
			nationality salutation ip ort ville ciudad città cidade plaats miasto
			department salary hiredate jobtitle employeeid staffid abteilung gehalt personalnr personalnummer
			eintrittsdatum matrikelnummer département salaire matricule departamento salario salário puesto cargo
			reparto stipendio afdeling dział wynagrodzenie stanowisko`},
		{fullField, `patient patientin patiente pacjent pacjentka paciente paziente patiënt titular
			titulaire titolare kontoinhaber kontoinhaberin rekeninghouder kursteilnehmer versicherter
			versicherungsnehmer assuré assicurato asegurado`},
		{birthField, `dob birthday birthdate dateofbirth born geburtsdatum geburtstag datedenaissance
			fechadenacimiento fechanacimiento datadinascita datadenascimento datanascimento geboortedatum
			dataurodzenia`},
		{rollField, `attendees participants apologies invitees anwesend anwesende teilnehmer teilnehmende
			teilnehmerinnen entschuldigt présents présent participants excusés absents asistentes ausentes
			presenti assenti partecipanti aanwezig aanwezigen afwezig deelnemers obecni
			nieobecni uczestnicy katılımcılar`},
		{rollField, "presentes participantes"}, //nolint:misspell // Spanish and Portuguese
		{otherField, "salaris"},                //nolint:misspell // Dutch
	} {
		for w := range strings.FieldsSeq(keys.list) {
			m[w] = keys.kind
		}
	}
	return m
}()

// maxKey and maxFieldValue are the maximum lengths of keys and values, in bytes.
const (
	maxKey        = 32
	maxFieldValue = 80
)

// fields adds the values whose keys identify them as personal.
func (s *scanner) fields(ctx context.Context) error {
	for i, look := 0, 0; ; i++ {
		if i >= look {
			if err := ctx.Err(); err != nil {
				return err
			}
			look = i + bytesPerLook
		}
		next := strings.IndexAny(s.text[i:min(len(s.text), i+bytesPerLook)], ":=>")
		if next < 0 {
			if i += bytesPerLook - 1; i >= len(s.text) {
				break
			}
			continue
		}
		i += next
		s.field(i)
	}
	if err := s.tables(ctx); err != nil {
		return err
	}
	return s.inserts(ctx)
}

// field looks at the key and the value around the separator at i.
func (s *scanner) field(i int) {
	kind, at := s.keyBefore(i)
	if kind == noField || kind == otherField {
		return
	}
	if kind == rollField {
		s.roll(i + 1)
		return
	}
	from, to := s.valueAfter(i)
	if from >= to {
		return
	}
	if kind == anyField {
		switch words := namedWords(s.text[from:to]); {
		case words == 0:
			return
		case half(s.text[at:from]) && s.pairAround(at, from, to):
			kind = nameField
		case words < 2 || !s.someones(at, to):
			return
		}
	}
	s.addField(kind, from, to)
}

// addField adds a value if it has the form that its key promises.
func (s *scanner) addField(kind fieldKind, from, to int) {
	value := s.text[from:to]
	var what string
	switch {
	case kind == nameField && keyedName(value), kind == anyField && namedWords(value) > 1:
		what = Person
	case kind == phoneField && dialable(value):
		what = PhoneNumber
	case kind == streetField && inStreet(value):
		what = StreetAddress
	case kind == fullField && namedWords(value) > 1 && nobodysTeam(value):
		what = Person
	case kind == birthField && (&scanner{}).numericDateAt(value):
		what = DateTime
	default:
		return
	}
	s.out = append(s.out, Span{Type: what, Start: from, End: to, Score: scoreCue, Pattern: true})
}

// keyBefore returns the kind and the start of the key that ends before the separator at i.
func (s *scanner) keyBefore(i int) (kind fieldKind, from int) {
	end := i
	for end > 0 && i-end < 3 && strings.IndexByte(" \"'\\", s.text[end-1]) >= 0 {
		end--
	}
	from = end
	for from > 0 && end-from <= maxKey && keyByte(s.text[from-1]) {
		from--
	}
	if from == end || end-from > maxKey || s.text[i] == '>' && s.byteAt(from-1) != '<' {
		return noField, from
	}
	return keyKind(s.text[from:end]), from
}

func keyByte(b byte) bool { return isAlnum(b) || b == '_' || b == '-' || b >= utf8.RuneSelf }

// keyKind returns the kind of a key. first_name, first-name, firstName and First Name are
// equivalent.
func keyKind(key string) fieldKind {
	var buf [maxKey * 2]byte
	b := buf[:0]
	for _, c := range key {
		if c == '_' || c == '-' || c == ' ' {
			continue
		}
		if len(b) > maxKey {
			return noField
		}
		b = utf8.AppendRune(b, unicode.ToLower(c))
	}
	return fieldKinds[string(b)]
}

// valueAfter returns the value after the separator at i: quoted text, the content of an element, or
// the words up to the end of the field.
func (s *scanner) valueAfter(i int) (from, to int) {
	from = i + 1
	for from < len(s.text) && from-i <= 3 && (s.text[from] == ' ' || s.text[from] == '\\') {
		from++
	}
	limit := min(len(s.text), from+maxFieldValue)
	if q := s.byteAt(from); q == '"' || q == '\'' {
		n := strings.IndexByte(s.text[min(from+1, limit):limit], q)
		if n <= 0 {
			return 0, 0
		}
		return from + 1, from + 1 + len(strings.TrimRight(s.text[from+1:from+1+n], `\`))
	}
	if s.text[i] == '=' && from > i+1 || s.text[i] == ':' && s.byteAt(i+1) == ':' { // an assignment of code
		return 0, 0
	}
	n := strings.IndexAny(s.text[from:limit], ",;\n\r}&|<>()\"")
	switch {
	case n < 0 && limit < len(s.text):
		return 0, 0
	case n < 0:
		n = limit - from
	case s.text[from+n] == '(', s.text[from+n] == '"', s.text[i] == '>' && s.text[from+n] != '<':
		return 0, 0
	}
	value := s.text[from : from+n]
	if k := strings.IndexAny(value, "=:"); k >= 0 { // the next field of a line
		value = value[:max(0, strings.LastIndexByte(value[:k], ' '))]
	}
	return from, from + len(strings.TrimRight(value, " \t."))
}

// recordReach is the distance around a field within which the other fields of its record are
// searched for, in bytes.
const recordReach = 200

// someones reports whether the record around a field, whose key and value are [i, to), has another
// field of a person.
func (s *scanner) someones(i, to int) bool {
	return s.around(i, to, func(k fieldKind, _ string) bool { return k > anyField || k == nameField })
}

// half reports whether a key is one half of a name: {"first": ..., "last": ...}.
func half(key string) bool {
	return strings.HasPrefix(fold(key), "first") || strings.HasPrefix(fold(key), "last")
}

// pairAround reports whether the record contains the other half of a name.
func (s *scanner) pairAround(i, from, to int) bool {
	want := "last"
	if strings.HasPrefix(fold(s.text[i:from]), "last") {
		want = "first"
	}
	return s.around(i, to, func(_ fieldKind, key string) bool { return fold(key) == want })
}

// around reports whether some other key of the record around [i, to) is wanted.
func (s *scanner) around(i, to int, wanted func(k fieldKind, key string) bool) bool {
	low, high := max(0, i-recordReach), min(len(s.text), to+recordReach)
	before, after := s.text[low:i], s.text[to:high]
	if k := strings.LastIndexByte(before, '{'); k >= 0 {
		low += k + 1
	} else if k := strings.LastIndex(before, "\n\n"); k >= 0 {
		low += k + 1
	}
	if k := strings.IndexByte(after, '}'); k >= 0 {
		high = to + k
	} else if k := strings.Index(after, "\n\n"); k >= 0 {
		high = to + k
	}
	for at := low; at < high; at++ {
		n := strings.IndexAny(s.text[at:high], ":=>")
		if n < 0 {
			return false
		}
		at += n
		kind, from := s.keyBefore(at)
		end := from
		for end < at && keyByte(s.text[end]) {
			end++
		}
		if (from < i || from >= to) && wanted(kind, s.text[from:end]) {
			return true
		}
	}
	return false
}

// keyedName reports whether the value of a key for names alone is a name. In addition to the forms
// that namedWords accepts it may be in capitals, be a common noun ("King") or have the surname
// first ("García, Ana").
func keyedName(value string) bool {
	last, first, _ := strings.Cut(value, ",")
	words, named := 0, false
	for _, part := range [2]string{last, first} {
		for w := range strings.FieldsSeq(part) {
			joint := joins(strings.ToLower(w))
			if words++; words > maxName+1 || !joint && !nameWord(w) {
				return false
			}
			named = named || !joint
		}
	}
	return named && gazetteer.words[value]&(entryPlace|entryState|entryGroup) == 0
}

// nameWord reports whether a word may be part of a name that a key has announced.
func nameWord(w string) bool {
	const least = 3 // letters of a word in capitals: shorter ones are codes
	lower := strings.ToLower(w)
	if _, thing := things[lower]; thing {
		return false
	}
	if utf8.RuneCountInString(w) >= least && w == strings.ToUpper(w) && w != lower {
		return strings.IndexFunc(w, func(c rune) bool { return !inName(c) && !unicode.IsLetter(c) }) < 0
	}
	return shapedAsName(w)
}

// namedWords returns the number of words of a person's name, or 0 if value is not one: words of
// letters that are capitalised, or in a script without capitals, and are not types, labels or
// things.
func namedWords(value string) int {
	n := 0
	for w := range strings.FieldsSeq(value) {
		n++
		if n > maxName+1 || !namedWord(w) {
			return 0
		}
	}
	if n > 0 && (gazetteer.words[value]&(entryPlace|entryState|entryGroup) != 0) {
		return 0
	}
	return n
}

// namedWord reports whether a word may be part of a name that nothing has announced.
func namedWord(w string) bool {
	if !shapedAsName(w) {
		return false
	}
	var buf [maxFieldValue]byte
	lower := buf[:0]
	for _, c := range w {
		if len(lower)+utf8.UTFMax > len(buf) {
			return false
		}
		lower = utf8.AppendRune(lower, unicode.ToLower(c))
	}
	if _, ok := commons["noun"][string(lower)]; ok {
		return false
	}
	_, thing := things[string(lower)]
	return !thing
}

// shapedAsName reports whether a word has a capital and small letters behind it, is of a script
// without capitals or joins the words of a name.
func shapedAsName(w string) bool {
	c, size := utf8.DecodeRuneInString(w)
	if !unicode.IsLetter(c) || unicode.IsLower(c) || len(w) == size && c < utf8.RuneSelf {
		return joins(w)
	}
	for _, c := range w[size:] {
		if !inName(c) && !unicode.IsMark(c) && (!unicode.IsUpper(c) || !particleOf(w)) &&
			(!unicode.IsLetter(c) || unicode.IsUpper(c)) {
			return false
		}
	}
	return true
}

// joins reports whether a word without a capital may stand in a name.
func joins(w string) bool {
	switch w {
	case "de", "da", "van", "von", "der", "den", "la", "le", "del", "della", "di", "do", "dos", "du",
		"ter", "ten", "zu", "af", "y", "e", "bin", "ben", "ibn", "al", "el":
		return true
	}
	return false
}

// things are words that stand as the value of a key of names and are nobody's: types, labels, what
// is called by a name, and what companies are.
//
//nolint:gochecknoglobals // constant table
var things = wordSet(`string text varchar char integer int number boolean bool none null nil true false optional
	required undefined any object date datetime unknown test example default sample placeholder value name
	surname first last full user admin administrator root guest anonymous system service server client api
	tool plugin module package library framework widget button page index main table column field key type
	inc ltd llc gmbh ag sa corp corporation group holding foundation institute association club
	chrome firefox windows linux ubuntu debian android nginx postgres redis kafka python java
	new old big red blue green black white silver gold pro plus premium standard basic edition
	vorname nachname nom prénom nombre apellido the a an and of for in on`)

// dialable reports whether a value is a telephone number that a key has announced.
func dialable(value string) bool {
	const least, most = 6, 15
	digits, same := 0, true
	for i := range len(value) {
		switch b := value[i]; {
		case isDigit(b):
			digits++
			same = same && b == value[0]
		case strings.IndexByte("+()-./ ", b) < 0:
			return false
		}
	}
	return digits >= least && digits <= most && !same
}

// inStreet reports whether a value announced by a key is a street address: words and a house
// number, or a word for a street.
func inStreet(value string) bool {
	if strings.ContainsAny(value, "@:=_{}[]\\/") {
		return false
	}
	letters, digits, words := census(value)
	return letters >= 3 && digits > 0 && digits <= 6 && words >= 2 || endsInStreet(value)
}
