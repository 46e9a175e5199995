// Package pii finds personal data in text.
//
// Two readers look at a text. Patterns reads all of it, at any size, and knows what can be told
// from the characters: numbers with a checksum, addresses of mail and machines, dates, and values
// that a word before them names. A token model, which is not part of this package, reads the parts
// that Nominate points at and gives each of its tokens a probability for every label. A Decoder
// joins both readings into spans that do not overlap.
//
// # What wins
//
// Where two spans claim the same bytes, a pattern with a checksum, with the layout of a number that
// has one, or with a fixed syntax beats the model, and the model beats a pattern that rests on a
// word of context. Among equals the longer one stays.
//
// # Whole numbers
//
// A long number is a layout: groups of digits with one space, dash or dot between two of them. What
// is found covers all of its layout or is not found, since a part would leave the rest to be read.
// The rest may be plainly something else: a word of another form behind a space (a date, a time), a
// number that is found by itself, the count of a thing; and groups without spaces of their own
// stand by themselves beside others. The code of a card behind its number is taken with it. A guess
// of the model at a part of a number is widened to all of it.
//
// A card number or an account number (IBAN) whose check digits are wrong is suspected, with a low
// score: a card where it is laid out (4-4-4-4, 4-6-5), or called, as one; an account where it has
// the length of its country and is in one piece or in fours. Neither is ever a telephone number,
// and neither is what a word beside it, or a check digit, says is the number of a book, of goods,
// of an order or of a machine, or what measures something.
//
// # What patterns leave to the model
//
// Names of people and organisations, places, and dates without a day are ordinary words. Patterns
// report them only where their surroundings say so ("my name is", a legal form, "born in"). The
// gazetteers of places and nationalities otherwise count as support for what the model sees. In
// scripts without capitals, and in Cyrillic, a table of words announces names (named.go): 我叫, 氏名：,
// 제 이름은, اسمي, मेरा नाम, ผมชื่อ, меня зовут; some of them only before a family name of their
// country. In mails of Chinese, Japanese and Korean titles, forms of signing and whole addresses do
// (asia.go).
//
// A model that knows the Latin script alone takes words of others for names because they are strange
// to it. Of such a model (Decoder.LatinAlone) a name in another script counts where its form bears it
// out: a family name and its length, two capitals, the ending of a place (abroad.go).
//
// In languages of the continent the house number follows the street and the postcode leads the town
// (continent.go), forms of letters say where names are (letter.go), and everyday words that such a
// model takes for names are left out (plain.go).
//
// Titles announce names in any case (courtesy.go). Streets of Romance languages and of Polish begin
// with their word (romance.go). Who is named in full once is looked for by the first and the last
// name in the rest of the text (again.go).
//
// # What keys say
//
// In JSON, XML, logs, settings and tables the key of a field is context for its value: what stands
// behind first_name, surname or customer_name is a name, behind street an address, behind phone a
// number (fields.go). A bare name, user or customer may be of anything; its value is somebody's where
// it is a full name and another field of a person stands in the same record.
//
// Lists of who was there have full names between commas, an address of mail has one before it
// (roll.go), and columns say the same of the rows of SQL (insert.go).
//
// # What is nobody's
//
// In code, logs, configuration and what programs print, numbers, capitals and dotted names are
// seldom anyone's. A line of which a third is no sentence is taken for a machine's. There dates,
// hosts, names and numbers count behind a key that says whose they are ("dob", "phone",
// "customer"), full names that the model is sure of do, and addresses of mail, cards, accounts and
// social security numbers always do. A line that begins as loggers begin one (log.go) is a
// machine's to the model however much prose follows, but for telephone numbers and for dates that a
// word announces. A time stamp that leads a line counts nowhere. Neither do addresses inside
// networks (private, loopback, link-local, set aside for documents), the hosts of examples, of code
// and packages, and of short links, nor addresses of sites that point at documents and programs: in
// links of Markdown, comments and the last lines of commits (see reference.go).
//
// All offsets are bytes of the text and lie on the boundaries of code points. The package has no
// goroutines and no mutable state; every function may be called concurrently. Time is linear in the
// text, whatever is in it.
package pii
