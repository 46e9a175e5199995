package rules

import (
	"slices"
	"strings"
)

// synonyms are words that people know from programming languages and from other routers, each with
// the words that say the same here. The first that fits the place is suggested.
var synonyms = map[string][]string{ //nolint:gochecknoglobals // constant table
	"and": {"all"}, "&&": {"all"}, "all_of": {"all"}, "allof": {"all"}, "every": {"all"}, "must": {"all"},
	"or": {"any"}, "||": {"any"}, "any_of": {"any"}, "anyof": {"any"}, "one_of": {"any", "in"}, "should": {"any"},
	"!": {"not"}, "none": {"not", "off"}, "none_of": {"not", "not_in"}, "must_not": {"not"}, "unless": {"not"},
	"if": {"when"}, "match": {"when"}, "matcher": {"when"}, "filter": {"when"}, "rules": {"when"}, "conditions": {"when"},
	"condition": {"when"}, "where": {"when"}, "signals": {"when"},
	"then": {"use"}, "action": {"use"}, "forward": {"use"}, "target": {"use"}, "route": {"use"}, "upstream": {"use", "models"},
	"deny": {"block"}, "reject": {"block"}, "refuse": {"block"}, "reply": {"answer"}, "respond": {"answer"}, "response": {"answer"},
	"id": {"name"}, "title": {"name"}, "key": {"name"},
	"modelrefs": {"models"}, "model_refs": {"models"}, "backends": {"models"}, "candidates": {"models"}, "fallbacks": {"models"},
	"targets": {"models"}, "provider": {"models"}, "providers": {"models"},
	"strategy": {"by"}, "algorithm": {"by"}, "policy": {"on_unknown", "by"}, "balance": {"by"}, "order_by": {"by"}, "sort": {"by"},
	"on_error": {"on_unknown"}, "on_failure": {"on_unknown"}, "default": {"on_unknown"}, "fail_mode": {"on_unknown"}, "fallback": {"on_unknown", "models"},
	"reasoning_effort": {"reasoning"}, "use_reasoning": {"reasoning"}, "thinking": {"reasoning"}, "effort": {"reasoning"},
	"system_prompt": {"prompt"}, "system": {"prompt"}, "instructions": {"prompt"},
	"max_completion_tokens": {"max_tokens"}, "max_output_tokens": {"max_tokens"}, "limit": {"max_tokens"},
	"plugins": {"set"}, "headers": {"set", "header"}, "body": {"set"}, "extra_body": {"set"}, "mask": {"redact"}, "anonymize": {"redact"},
	"text": {"message"}, "reason": {"message"}, "error": {"message"}, "message": {"text"}, "content": {"text", "message"}, "body_text": {"text"},
	"category": {"domain"}, "subject": {"domain"}, "topic": {"domain"}, "keywords": {"keyword"}, "regex": {"matches", "keyword"},
	"prompt_guard": {"jailbreak"}, "injection": {"jailbreak"}, "prompt_injection": {"jailbreak"}, "safety": {"jailbreak"},
	"personal_data": {"pii"}, "privacy": {"pii"}, "difficulty": {"complexity"}, "fact_check": {"factcheck"}, "lang": {"language"},
	"user": {"tenant"}, "team": {"tenant"}, "customer": {"tenant"}, "group": {"role"}, "authz": {"role"}, "length": {"tokens"},
	"prompt_tokens": {"tokens"}, "embedding": {"intent", "cache"}, "embeddings": {"intent"}, "tools": {"has"}, "images": {"has"},
	"threshold": {"min_score", "similarity"}, "score": {"min_score"}, "min": {"min_score", "gte"}, "confidence": {"min_score"},
	"max": {"max_score", "lte"}, "value": {"in", "equals"}, "values": {"in"}, "is": {"in", "equals"}, "eq": {"equals", "in"},
	"==": {"equals", "in"}, "exclude": {"not_in"}, "except": {"not_in"}, "nin": {"not_in"}, "contains": {"matches"}, "like": {"matches"},
	"pattern": {"matches"}, "prefix": {"matches"}, "exists": {"present"}, "type": {"types"}, "entities": {"types"}, "min_similarity": {"similarity"},
	">": {"gt"}, ">=": {"gte"}, "<": {"lt"}, "<=": {"lte"}, "ge": {"gte"}, "le": {"lte"}, "above": {"gt"}, "below": {"lt"},
	"allow": {"skip"}, "open": {"skip"}, "fail_open": {"skip"}, "ignore": {"skip"}, "closed": {"match"}, "fail_closed": {"match"},
	"block": {"match", "hold"}, "fail": {"error"}, "abort": {"error"}, "price": {"cost"}, "cheapest": {"cost"}, "fastest": {"latency"},
	"speed": {"latency"}, "best": {"quality"}, "accuracy": {"quality"}, "random": {"weight"}, "weighted": {"weight"}, "first": {"order"},
	"priority": {"order"}, "false": {"off", "none"}, "disabled": {"off", "none"}, "minimal": {"low"}, "max_effort": {"high"},
	"xhigh": {"high"}, "adaptive": {"auto"}, "replace": {"always", "replace_vague"}, "append": {"prefix"}, "prepend": {"prefix"},
	"function_calling": {"tools"}, "functions": {"tools"}, "vision": {"images"}, "image": {"images"},
	"hard": {"high"}, "easy": {"low"}, "simple": {"low"}, "complex": {"high"},
}

// notes explain words of other routers that have no counterpart, because of what they stand for.
var notes = map[string]string{ //nolint:gochecknoglobals // constant table
	"priority":    "routes are tried in the order of the file",
	"operator":    "write {all: [...]} or {any: [...]}",
	"op":          "write {all: [...]} or {any: [...]}",
	"enabled":     "to switch a route off, remove it or write `when: false`",
	"description": "write a comment",
	"else":        "a further route, or default, answers what this one does not match",
	"temperature": "write set: {body: {temperature: NUMBER}}",
	"top_p":       "write set: {body: {top_p: NUMBER}}",
	"stop":        "write set: {body: {stop: [...]}}",
	"stream":      "the client decides",
	"timeout":     "timeouts belong to server and models",
	"retries":     "the candidates of models are tried in turn",
}

// hint ends a message about a word that people bring along from elsewhere.
func hint(word string, known []string) string {
	word = strings.ToLower(word)
	for _, s := range synonyms[word] {
		if slices.Contains(known, s) {
			return "; did you mean \"" + s + "\"?"
		}
	}
	return ""
}
