package escalate

import (
	"regexp"
	"strings"
)

// refusal matches how models begin when they decline: an optional apology, and what they cannot or
// will not do. These are the phrases that chat models are known for; other refusals are not
// noticed.
var refusal = regexp.MustCompile(`^\W*(?:` +
	`(?:(?:i'm|i am|we're|we are)? ?(?:very |so |really )?(?:sorry|afraid)|i apologi[sz]e|my apologies|apologies` +
	`|unfortunately)?[,.;:!-]* *(?:but |that |as an ai[^,]{0,40}, *)?` +
	`(?:i|we)(?:'m| am| are)? *(?:can't|cannot|can not|won't|will not|unable to|not able to` +
	`|not allowed to|must decline|have to decline|decline|couldn't|don't feel comfortable|not comfortable) *` +
	`(?:to |with |directly |in good conscience )*(?:help|assist|provid|answer` +
	`|comply|fulfil|do that|do this|creat|generat|writ|shar|support|engag|discuss` +
	`|continu|complet|process|offer|giv|respond|take part|that request|this request)` +
	`|as an ai(?:(?: language)? model| assistant)?,` +
	` *(?:i|we)(?:'m| am)? *(?:can't|cannot|unable|not able|do not|don't)` +
	`|lo siento,? (?:pero )?no puedo|je suis désolée?,? (?:mais )?je ne peux pas` +
	`|es tut mir leid,? (?:aber )?(?:ich kann|dabei kann ich|das kann ich)` +
	`|mi dispiace,? (?:ma )?non posso` +
	`)`)

// lead is how much of a text is searched for a refusal, in bytes.
const lead = 240

// Refuses reports whether a text begins like one that declines to answer.
func Refuses(text string) bool {
	text = strings.TrimSpace(text)
	if len(text) > lead {
		text = text[:lead]
	}
	text = strings.ReplaceAll(strings.ToLower(text), "’", "'")
	at := refusal.FindStringIndex(text)
	return at != nil && !isFigure(text[:at[1]]+rest(text[at[1]:]))
}

var (
	// figure matches figures of speech that resemble a refusal: I can't help but notice, I won't
	// give up on this.
	figure = regexp.MustCompile(`help but (?:notice|wonder|laugh|smile|admire|agree|love` +
		`|feel (?:that|like|a)|think (?:of|about|that))\b` +
		`|give up(?:$|[,;]| on\b| until\b| hope\b)|give in (?:to|easily)\b`)
	again = regexp.MustCompile(`can't|cannot|won't|unable|not able`)
)

// isFigure reports whether a sentence has such a figure of speech and no refusal after it.
func isFigure(sentence string) bool {
	at := figure.FindStringIndex(sentence)
	return at != nil && !again.MatchString(sentence[at[1]:])
}

// rest returns a text up to the end of its first sentence.
func rest(text string) string {
	if i := strings.IndexAny(text, ".!?\n"); i >= 0 {
		return text[:i]
	}
	return text
}
