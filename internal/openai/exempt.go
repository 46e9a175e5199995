package openai

import "slices"

// scope is the kind of object that contains an exempt member.
type scope uint8

const (
	inBody   scope = iota
	inPart         // an element of a content list
	inMedium       // the object in a part that holds an image, audio, a video or a file
	inItem         // an item of the input of a Response
	inPrompt       // the stored prompt that a Response refers to
)

// exemption is a member whose strings are not read, because no model reads them as text.
type exemption struct {
	in   scope
	name string
	why  string
	// stays: a server uses the value as a key, so it must not be replaced
	stays bool
}

// exemptions are all members that are not read, by the objects that they are in. What is not among
// them is.
//
//nolint:gochecknoglobals // constant table
var exemptions = [...]exemption{
	{inBody, "model", "chooses the model", true},
	{inBody, "user", askedBy, false},
	{inBody, "safety_identifier", askedBy, false},
	{inBody, "metadata", "is stored with the response", false},
	{inBody, "client_metadata", "identifies the client program", false},
	{inBody, "stop", "is compared with the output", false},
	{inBody, "logit_bias", "its names are token ids", true},
	{inBody, "include", "selects parts of the response", true},
	{inBody, "prompt_cache_key", caches, false},
	{inBody, "cache_salt", caches, false},
	{inBody, "request_id", "identifies the request in logs", false},
	{inBody, "kv_transfer_params", caches, true},
	{inBody, "prompt_embeds", "holds vectors; signals are unknown", true},
	{inBody, "previous_response_id", stored, true},
	{inBody, "conversation", stored, true},
	{inBody, "signalbox", forTheProxy, false},

	{inPart, "image_url", pictured, false},
	{inPart, "image", pictured, false},
	{inPart, "image_embeds", pictured, false},
	{inPart, "audio_url", pictured, false},
	{inPart, "audio", pictured, false},
	{inPart, "audio_embeds", pictured, false},
	{inPart, "input_audio", pictured, false},
	{inPart, "video_url", pictured, false},
	{inPart, "video", pictured, false},
	{inPart, "file", pictured, false},
	{inPart, "file_url", pictured, false},
	{inPart, "file_data", pictured, false},
	{inPart, "file_id", stored, true},

	{inMedium, "url", pictured, false},
	{inMedium, "data", pictured, false},
	{inMedium, "file_data", pictured, false},
	{inMedium, "file_id", stored, true},

	{inItem, "id", stored, true},
	{inItem, "status", "reports progress of the server", true},
	{inItem, "result", "in `image_generation_call` " + pictured, false},
	{inItem, "encrypted_content", "is readable for the server only", true},

	{inPrompt, "id", stored, true},
	{inPrompt, "version", stored, true},
}

// Reasons that several members share.
const (
	askedBy     = "identifies the caller to the server"
	caches      = "controls the cache of the server"
	stored      = "refers to an object stored by the server"
	pictured    = "holds an image, a recording or a file"
	forTheProxy = "is for the proxy and not forwarded"
)

// exempt reports whether the strings of a member are not read.
func exempt(in scope, name string) bool { return exemptionOf(in, name) != nil }

func exemptionOf(in scope, name string) *exemption { return exempted[in][name] }

//nolint:gochecknoglobals // the table, by scope and name
var exempted = func() (by [inPrompt + 1]map[string]*exemption) {
	for i := range exemptions {
		e := &exemptions[i]
		if by[e.in] == nil {
			by[e.in] = make(map[string]*exemption)
		}
		by[e.in][e.name] = e
	}
	return by
}()

// Exemption is a member of a request whose strings are not read.
type Exemption struct {
	In   string // the object that contains it: body, part, medium, item or prompt
	Name string
	Why  string // why no model reads it as text
	// Stays means that the server uses the value as a key, so it must not be replaced.
	Stays bool
}

// Exemptions lists all members that are not read. The caller owns the result.
func Exemptions() []Exemption {
	out := make([]Exemption, len(exemptions))
	for i, e := range exemptions {
		out[i] = Exemption{In: scopeNames[e.in], Name: e.name, Why: e.why, Stays: e.stays}
	}
	return out
}

//nolint:gochecknoglobals // constant table
var scopeNames = [...]string{"body", "part", "medium", "item", "prompt"}

// Stays reports whether the strings in a member must reach the server unchanged. path is the path
// of its name in the body: the names of the enclosing members and its own, with an empty element
// for each list.
func Stays(path []string) bool {
	in, name, ok := placeOf(path)
	if !ok {
		return false
	}
	e := exemptionOf(in, name)
	return e != nil && e.stays
}

// Kept reports whether a server stores or compares the strings of a member that no model reads,
// such as user, metadata or stop; path is as for Stays. Members for the server's cache do not
// count: values that differ must remain different there.
func Kept(path []string) bool { return len(path) > 0 && isKept(exemptionOf(inBody, path[0])) }

// HasKept reports whether a request has a member for which Kept is true.
func HasKept(r *Request) bool {
	return slices.ContainsFunc(exemptions[:], func(e exemption) bool {
		return e.in == inBody && isKept(&e) && r.Field(e.name) != nil
	})
}

func isKept(e *exemption) bool {
	return e != nil && !e.stays && e.why != caches && e.why != forTheProxy
}

// placeOf finds the innermost object with exemptions of its own that contains a member.
func placeOf(path []string) (in scope, name string, ok bool) {
	const (
		item   = 2 // input, its list, a member
		part   = 4 // messages, its list, content, its list, a member
		medium = 5
	)
	if len(path) == 0 {
		return 0, "", false
	}
	if exempt(inBody, path[0]) {
		return inBody, path[0], true
	}
	switch list := len(path) > 1 && path[1] == ""; {
	case path[0] == "prompt" && len(path) > 1 && !list:
		return inPrompt, path[1], true
	case !list || path[0] != "messages" && path[0] != "input":
		return 0, "", false
	case len(path) > part && path[3] == "" && (path[2] == "content" || path[2] == "output"):
		if len(path) > medium && exempt(inPart, path[part]) {
			return inMedium, path[len(path)-1], true
		}
		return inPart, path[part], true
	case path[0] == "input" && len(path) > item:
		return inItem, path[item], true
	}
	return 0, "", false
}
