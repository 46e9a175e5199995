package simulator

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"signalbox/internal/option"
)

// Answer is a scripted response: a Server sends it word for word instead of one that echoes the
// request. It serves to demonstrate and test components that read responses; no model computes it.
type Answer struct {
	// Match is a part of the last user message, spelled exactly. The first matching answer is sent;
	// an empty Match matches every message.
	Match string
	// Text is the complete response; `max_tokens` and `stop` still shorten it. Required.
	Text string
	// Chunk is the length of a token, and thus of a chunk of a stream, in code points. 0 keeps the
	// tokens of CountTokens.
	Chunk int
	// TPOT is the time between two tokens of this answer. 0 means the server's.
	TPOT time.Duration
}

// Validate returns all problems of a, joined, or nil.
func (a Answer) Validate() error {
	var p option.Problems
	if a.Text == "" {
		p.Addf("text", "is missing")
	}
	option.NotNegative(&p, "chunk", a.Chunk)
	option.NotNegative(&p, "tpot", a.TPOT)
	return p.Err()
}

// maxScriptLine limits the length of a line of a script, in bytes.
const maxScriptLine = 1 << 20

// ReadAnswers reads a script: one JSON object a line, such as
//
//	{"match": "Eiffel", "text": "It is 330 m tall.", "chunk": 4, "tpot": "20ms"}
//
// with the members of Answer; text is required, unknown members are errors, empty lines are left
// out. An error names the line, counted from 1.
func ReadAnswers(r io.Reader) ([]Answer, error) {
	var answers []Answer
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxScriptLine)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		a, err := readAnswer(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		answers = append(answers, a)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	return answers, nil
}

func readAnswer(line []byte) (Answer, error) {
	var raw struct {
		Match string `json:"match"`
		Text  string `json:"text"`
		Chunk int    `json:"chunk"`
		TPOT  string `json:"tpot"`
	}
	if err := json.Unmarshal(line, &raw, json.RejectUnknownMembers(true)); err != nil {
		return Answer{}, err //nolint:wrapcheck // the caller adds the line
	}
	a := Answer{Match: raw.Match, Text: raw.Text, Chunk: raw.Chunk}
	if raw.TPOT != "" {
		var err error
		if a.TPOT, err = time.ParseDuration(raw.TPOT); err != nil {
			return Answer{}, fmt.Errorf("tpot: %w", err)
		}
	}
	return a, a.Validate()
}

// scripted returns the first answer that matches a question, or nil.
func scripted(answers []Answer, question string) *Answer {
	for i := range answers {
		if strings.Contains(question, answers[i].Match) {
			return &answers[i]
		}
	}
	return nil
}

// recite replaces the text of g's choices by the scripted answer to a question, if there is one.
// Reasoning and tool calls stay.
func (s *Server) recite(g *generation, question string, stops stopStrings, maxTokens int) {
	a := scripted(s.opt.Answers, question)
	if a == nil {
		return
	}
	g.tpot = a.TPOT
	text, matched := applyStop(a.Text, stops)
	for i := range g.choices {
		c := &g.choices[i]
		if c.callID != "" {
			continue
		}
		c.drop(contentPiece)
		c.finish, c.stopReason = finishStop, matched
		c.addEvery(a.Chunk, text)
		c.cut(maxTokens)
	}
}

// addEvery appends text in tokens of the given number of code points; of the usual length if that
// is 0.
func (c *choice) addEvery(runes int, text string) {
	if runes == 0 {
		c.add(contentPiece, text)
		return
	}
	for text != "" {
		n := 0
		for range runes {
			_, size := utf8.DecodeRuneInString(text[n:])
			n += size
		}
		c.pieces = append(c.pieces, piece{contentPiece, text[:n]})
		text = text[n:]
	}
}

// drop removes the pieces of a kind.
func (c *choice) drop(kind pieceKind) {
	rest := c.pieces[:0]
	for _, p := range c.pieces {
		if p.kind != kind {
			rest = append(rest, p)
		}
	}
	c.pieces = rest
}
