package syntax

// RouteKeys are the keys of a route.
func RouteKeys() []string { return []string{"name", "when", "on_unknown", "use", "block", "answer"} }

// UseKeys are the keys of use and default.
func UseKeys() []string {
	return []string{
		"models", "by", "quality_margin", "reasoning", "override", "prompt", "max_tokens", "guard", "cache", "redact", "windows", "set",
		"escalate", "mirror", "tools", "tool_results", "canary",
	}
}

// ConditionKeys are the keys of a condition.
func ConditionKeys() []string {
	return []string{
		"all", "any", "not", "condition", "domain", "intent", "keyword", "jailbreak", "injection",
		"pii", "complexity", "factcheck", "classifier",
		"language", "cache", "role", "tenant", "tokens", "context_tokens", "conversation", "model", "has", "header", "session",
	}
}

// BoundKeys are the keys that bound the score of a label.
func BoundKeys() []string { return []string{"min_score", "max_score", "margin"} }
