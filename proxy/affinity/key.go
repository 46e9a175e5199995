package affinity

// The headers by which clients name their session without knowing of this proxy.
const (
	SessionHeader       = "X-Session-Id"
	ClaudeSessionHeader = "X-Claude-Code-Session-Id"
)

// Source says what a key was made of.
type Source uint8

// The sources of a key; the first that a request has counts.
const (
	NoSource         Source = iota // too short to matter, and nothing is named
	Contexts                       // the stored contexts that it names
	Session                        // the session of the body object "signalbox", or of its header
	PromptCacheKey                 // the field prompt_cache_key
	SessionID                      // SessionHeader
	ClaudeSession                  // ClaudeSessionHeader
	PreviousResponse               // the field previous_response_id
	Prefix                         // the first 4 KiB of its text
)

// String returns the source in lower case, for labels.
func (s Source) String() string {
	switch s {
	case NoSource:
		return "none"
	case Contexts:
		return "contexts"
	case Session:
		return "session"
	case PromptCacheKey:
		return "prompt_cache_key"
	case SessionID:
		return "session_id"
	case ClaudeSession:
		return "claude_session"
	case PreviousResponse:
		return "previous_response"
	case Prefix:
	}
	return "prefix"
}

// A prompt without a name is kept together by its first text only if it is long enough for a cache
// to pay: 1,024 tokens is also where providers begin to cache prompts.
const (
	prefixBlocks = 4 // of 1 KiB
	prefixTokens = 1024
)

// Hints is what a request says about what it belongs to. Empty fields say nothing.
type Hints struct {
	Contexts         []string // ids with versions, in their order
	Session          string
	PromptCacheKey   string
	SessionID        string
	ClaudeSession    string
	PreviousResponse string
}

// Empty reports whether the request says nothing about it.
func (h *Hints) Empty() bool {
	return len(h.Contexts) == 0 && h.Session == "" && h.PromptCacheKey == "" && h.SessionID == "" && h.ClaudeSession == "" && h.PreviousResponse == ""
}

// Key returns what a request of a class belongs to, for Request.Key, and what that was made of. The
// key is 0 when there is nothing. Equal names of different classes are different keys. blocks is
// the chain of the prompt, tokens the estimate of its length.
func (h *Hints) Key(class Class, blocks []uint64, tokens int) (uint64, Source) {
	if len(h.Contexts) > 0 {
		key := uint64(class)
		for _, id := range h.Contexts {
			key = sum(key, id)
		}
		return name(key, Contexts), Contexts
	}
	for _, x := range [...]struct {
		value  string
		source Source
	}{
		{h.Session, Session},
		{h.PromptCacheKey, PromptCacheKey},
		{h.SessionID, SessionID},
		{h.ClaudeSession, ClaudeSession},
		{h.PreviousResponse, PreviousResponse},
	} {
		if x.value != "" {
			return name(sum(uint64(class), x.value), x.source), x.source
		}
	}
	if tokens >= prefixTokens && len(blocks) >= prefixBlocks {
		return name(class.block(blocks[prefixBlocks-1]), Prefix), Prefix
	}
	return 0, NoSource
}

// name keeps keys of different sources apart and is never 0.
func name(key uint64, source Source) uint64 { return max(1, mix(key+uint64(source))) }
