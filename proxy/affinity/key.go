package affinity

// Headers by which clients of other software name their session.
const (
	SessionHeader       = "X-Session-Id"
	ClaudeSessionHeader = "X-Claude-Code-Session-Id"
)

// Source is what a key was derived from.
type Source uint8

// The sources of a key. The first one that a request has is used.
const (
	NoSource         Source = iota // nothing is named, and the prompt is too short
	Contexts                       // the stored contexts that the request names
	Session                        // the session in the body object "signalbox" or its header
	PromptCacheKey                 // the field prompt_cache_key
	SessionID                      // SessionHeader
	ClaudeSession                  // ClaudeSessionHeader
	PreviousResponse               // the field previous_response_id
	Prefix                         // the first blocks of its text; see prefixBlocks
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

// A prompt without a name is keyed by its beginning only if it is long enough for caching to pay:
// 1,024 tokens, which is also where providers begin to cache prompts.
const (
	prefixBlocks = 4 << 10 / BlockBytes // blocks from the beginning of the text: 4 KiB
	prefixTokens = 1024
)

// Hints is what a request says about what it belongs to. Empty fields mean nothing is known.
type Hints struct {
	Contexts         []string // ids with versions, in order
	Session          string
	PromptCacheKey   string
	SessionID        string
	ClaudeSession    string
	PreviousResponse string
}

// Empty reports whether no field is set.
func (h *Hints) Empty() bool {
	return len(h.Contexts) == 0 && h.Session == "" && h.PromptCacheKey == "" && h.SessionID == "" && h.ClaudeSession == "" && h.PreviousResponse == ""
}

// Key returns the key for Request.Key and its source. The key is 0 if the request belongs to
// nothing. Equal names in different classes give different keys. blocks is the chain of the prompt,
// tokens its estimated length.
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

// name keeps the keys of different sources apart; it never returns 0.
func name(key uint64, source Source) uint64 { return max(1, mix(key+uint64(source))) }
