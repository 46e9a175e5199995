// Package pii finds personal data in text.
//
// Two readers examine a text. Patterns reads all of it, at any size, and finds what the characters
// show: numbers with a checksum, mail and machine addresses, dates, and values that a preceding
// word announces. A token model, which is not part of this package, reads the parts selected by
// Nominate and assigns each of its tokens a probability per label. A Decoder combines both results
// into spans that do not overlap.
//
// # Precedence
//
// If two spans claim the same bytes, a pattern with a checksum, with the layout of a number that
// has one, or with a fixed syntax takes precedence over the model, and the model over a pattern
// that depends on a context word. Otherwise the longer span stays.
//
// # Whole numbers
//
// A long number is a layout: groups of digits separated by single spaces, dashes or dots. A finding
// covers its whole layout; otherwise there is no finding, because the remaining digits would be
// left readable. Exceptions are neighbours that are clearly something else: a word of another form
// after a space (a date, a time), a number that is a finding of its own, the count of a thing.
// Groups without spaces of their own also stand alone. The security code after a card number
// belongs to the finding. A span of the model at a part of a number is widened to the whole number.
//
// A card number or an account number (IBAN) with wrong check digits is reported with a low score: a
// card number if it has the layout of one (4-4-4-4, 4-6-5) or is announced as one; an account
// number if it has the length for its country and is written in one piece or in groups of four.
// Neither is reported as a telephone number. Neither includes a number that a nearby word or a
// check digit marks as the number of a book, of goods, of an order or of a machine, or as a
// measurement.
//
// # What patterns leave to the model
//
// Names of people and organisations, places, and dates without a day are ordinary words. Patterns
// report them only if their surroundings identify them ("my name is", a legal form, "born in").
// Otherwise the gazetteers of places and nationalities only support the model's findings. In
// scripts without capitals, and in Cyrillic, a table of words announces names (named.go): 我叫, 氏名：,
// 제 이름은, اسمي, मेरा नाम, ผมชื่อ, меня зовут; some of them only before a family name common in their
// country. In Chinese, Japanese and Korean mail, names are also found through titles, signatures
// and complete addresses (asia.go).
//
// A model that was trained on the Latin script alone takes words of other scripts for names because
// they are unfamiliar. From such a model (Decoder.LatinAlone) a name in another script is accepted
// only if its form confirms it: a family name and its length, two capitals, the ending of a place
// (abroad.go).
//
// In continental European languages the house number follows the street and the postcode precedes
// the town (continent.go). The conventions of letters show where names are (letter.go). Everyday
// words that such a model takes for names are excluded (plain.go).
//
// Titles announce names in any case (courtesy.go). In Romance languages and Polish the name of a
// street begins with the word for a street (romance.go). The first and last names of a person who
// is named in full once are searched for in the rest of the text (again.go).
//
// # Keys
//
// In JSON, XML, logs, settings and tables the key of a field is context for its value: the value of
// first_name, surname or customer_name is a name, that of street an address, that of phone a number
// (fields.go). The keys name, user and customer may describe anything; their value is personal only
// if it is a full name and the same record has another field of a person.
//
// Lists of attendees contain full names between commas, and a mail address may have a name before
// it (roll.go). The columns of SQL statements describe the values in their rows (insert.go).
//
// # What is not personal
//
// Numbers, capitals and dotted names in code, logs, configuration and program output are rarely
// personal. A line in which a third of the words cannot be part of a sentence counts as machine
// text. In such lines dates, hosts, names and numbers are only reported after a key that assigns
// them to a person ("dob", "phone", "customer"). Full names with a high probability of the model,
// mail addresses, card numbers, account numbers and social security numbers are always reported. In
// a line that begins like a log line (log.go) the model's findings are treated as in machine text,
// however much prose follows, except telephone numbers and dates that a word announces. A time
// stamp at the start of a line is never reported. Neither are addresses inside networks (private,
// loopback, link-local, reserved for documentation), the hosts of examples, of code and packages,
// and of short links, nor web addresses that refer to documents and programs: in Markdown links,
// comments and the last lines of commit messages (see reference.go).
//
// All offsets are in bytes of the text and lie on code point boundaries. The package starts no
// goroutines and has no mutable state; all functions may be called concurrently. Time is linear in
// the length of the text, whatever its content.
package pii
