package pii

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The forms of letters say where names are: behind Herr and Sayın, and in the line behind Mit
// freundlichen Grüßen. What they are made of is no name itself.

// closed adds the names in the lines behind those that close a letter.
func (s *scanner) closed(ctx context.Context) error {
	look := 0
	for from := 0; from < len(s.text); {
		if from >= look {
			if err := ctx.Err(); err != nil {
				return err
			}
			look = from + bytesPerLook
		}
		end := strings.IndexByte(s.text[from:], '\n')
		if end < 0 {
			return nil
		}
		line, start := s.text[from:from+end], from
		from += end + 1
		if len(line) > longestClosing {
			continue
		}
		if bare := strings.Trim(line, " \t\r,.!>"); closesLetter(bare) && (len(bare) > 2 || !s.listed(start, from)) {
			s.signed(from)
		}
	}
	return nil
}

// listed reports whether the line [from, to) stands in a list, where LG is a company: behind a
// colon, or with two lines below it that are one word with a capital each.
func (s *scanner) listed(from, to int) bool {
	if strings.HasSuffix(strings.TrimRight(s.text[max(0, from-cueWidth):from], " \t\r\n"), ":") {
		return true
	}
	for range 2 {
		line := beforeLineEnd(s.text[to:min(len(s.text), to+maxFieldValue)])
		word := strings.Trim(line, " \t\r,*-")
		if first, _ := utf8.DecodeRuneInString(word); !unicode.IsUpper(first) || strings.IndexByte(word, ' ') >= 0 {
			return false
		}
		to = min(len(s.text), to+len(line)+1)
	}
	return true
}

// closesLetter reports whether a line is a phrase that letters close with.
func closesLetter(line string) bool {
	if line == "" {
		return false
	}
	for _, phrase := range closingPhrases[line[0]|0x20] {
		if strings.EqualFold(line, phrase) {
			return true
		}
	}
	return false
}

// signed adds the name that the next line with text at i is made of.
func (s *scanner) signed(i int) {
	for i < len(s.text) && strings.IndexByte(" \t\r\n>", s.text[i]) >= 0 {
		i++
	}
	end := i + len(beforeLineEnd(s.text[i:min(len(s.text), i+maxFieldValue)]))
	name := strings.TrimRight(s.text[i:end], " \t\r,")
	words := 0
	for word := range strings.FieldsSeq(name) {
		if words++; !signsWith(word, words) {
			return
		}
	}
	if words > 0 && words <= maxName+1 {
		s.addName(i, name)
	}
}

func beforeLineEnd(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// signsWith reports whether a word, the nth of its line, may be one of the name that a letter ends
// with.
func signsWith(word string, nth int) bool {
	first, size := utf8.DecodeRuneInString(word)
	if _, small := betweenStreet[word]; nth > 1 && (small || word == "von" || word == "y") {
		return true
	}
	if !unicode.IsUpper(first) || size == len(word) || strings.IndexFunc(word[size:], func(r rune) bool {
		return !inName(r) && !unicode.IsUpper(r)
	}) >= 0 || closesLetter(word) || gazetteer.words[strings.TrimRight(word, ".")]&(entryLegal|entryPlace) != 0 {
		return false
	}
	for _, kind := range [...]string{"german", "abbreviation", "signer"} {
		if _, ok := commons[kind][word]; ok {
			return false
		}
	}
	_, joins := commons["function"][fold(word)]
	return !joins
}

// addressed adds the name behind a title of another language than English that ends at i: one word
// with a capital, or more where the address ends behind them.
func (s *scanner) addressed(title string, i int) {
	if _, ok := letterTitles[title]; !ok || s.byteAt(i) != ' ' || !s.capitalAt(i+1) {
		return
	}
	first := s.nameEnd(i + 1)
	if word := s.text[i+1 : first]; !signsWith(word, 1) {
		return
	}
	full := s.fullName(i + 1)
	if full > first && (full == len(s.text) || strings.IndexByte(",\n\r:!", s.text[full]) >= 0) {
		first = full
	}
	s.addName(i+1, s.text[i+1:first])
}

// longestClosing is the longest line that is taken for one that closes a letter, in bytes.
const longestClosing = 48

//nolint:gochecknoglobals // constant tables
var (
	letterTitles = wordSet("Herr Herrn Frau Monsieur Madame Mme Señor Señora Señorita Senhor Senhora Signor " +
		"Signora Meneer " +
		"Mevrouw Sayın")
	// closingPhrases are by their first byte in lower case.
	closingPhrases = func() map[byte][]string {
		m := map[byte][]string{}
		for p := range strings.SplitSeq("mit freundlichen grüßen,mit freundlichen grüssen,freundliche grüße,"+
			"freundliche grüsse,viele grüße,liebe grüße,beste grüße,herzliche grüße,viele grüsse,liebe grüsse,beste grüsse,mfg,"+
			"lg,vg,hochachtungsvoll,bien cordialement,cordialement,bien à vous,sincères salutations,"+
			"salutations distinguées,cordiali saluti,distinti saluti,saluti,un saludo,saludos,"+
			"saludos cordiales,atentamente,atenciosamente,cumprimentos,com os melhores cumprimentos,abraço,"+
			"um abraço,met vriendelijke groet,met vriendelijke groeten,vriendelijke groet,groeten,groetjes,"+
			"z poważaniem,pozdrawiam,serdecznie pozdrawiam,z pozdrowieniami,saygılarımla,saygılarımızla,"+
			"sevgiler,selamlar,iyi çalışmalar,med vänliga hälsningar,vänliga hälsningar,hälsningar,mvh,"+
			"best regards,kind regards,warm regards,regards,best wishes,yours sincerely,yours faithfully,"+
			"yours truly,sincerely,cheers,many thanks", ",") {
			m[p[0]|0x20] = append(m[p[0]|0x20], p)
		}
		return m
	}()
)
