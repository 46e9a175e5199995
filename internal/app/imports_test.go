package app

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImportOrderIsOneWay reads what packages really import. It repeats depguard's rules in the
// positive form: what is not listed is not allowed, but for internal/script, which any package may ask.
func TestImportOrderIsOneWay(t *testing.T) {
	vocabulary := []string{"internal/signal", "internal/tensor"}
	allowed := map[string][]string{
		"internal/signal":          nil,
		"internal/tensor":          nil,
		"internal/script":          nil,
		"internal/option":          nil,
		"internal/bounded":         nil,
		"internal/disk":            nil,
		"internal/wire":            nil,
		"internal/telemetry":       {"internal/disk", "internal/option"},
		"internal/openai":          {"internal/option", "internal/signal"},
		"internal/anthropic":       {"internal/openai"},
		"internal/eval":            nil,
		"internal/console":         {"proxy", "proxy/placement", "proxy/recent"},
		"internal/report":          {"proxy/decisionlog"},
		"rules":                    {"internal/signal", "rules/internal/condition", "rules/internal/syntax"},
		"rules/internal/condition": {"internal/signal"},
		"rules/internal/syntax":    nil,
		"gpu":                      append([]string{"gpu/dense", "internal/option", "internal/wire"}, vocabulary...),
		"gpu/dense":                nil,
		"internal/oip":             vocabulary,
		"internal/judge":           append([]string{"internal/bounded"}, vocabulary...),
		"internal/worker":          append([]string{"gpu", "internal/oip"}, vocabulary...),
		"classify": append([]string{
			"classify/bundle", "classify/compress", "classify/lean", "classify/head", "classify/knn",
			"classify/language",
			"classify/lexical", "classify/origin", "classify/pii", "classify/scan",
			"classify/tokenize", "classify/tokenize/sugarme", "classify/views", "internal/bounded", "internal/option",
			"internal/telemetry",
		}, vocabulary...),
		"classify/bundle":    {"classify/tokenize", "internal/tensor", "internal/wire"},
		"classify/compress":  nil,
		"classify/lean":      nil,
		"classify/head":      nil,
		"classify/knn":       {"internal/disk"},
		"classify/lexical":   vocabulary,
		"classify/origin":    {"internal/signal"},
		"classify/pii":       nil,
		"classify/scan":      nil,
		"classify/tokenize":  nil,
		"classify/views":     nil,
		"internal/hub":       {"classify/bundle", "internal/disk", "internal/hub/local"},
		"internal/hub/local": {"classify/bundle", "classify/head", "internal/disk"},
		"proxy": {
			"internal/anthropic", "internal/openai", "internal/option", "internal/signal",
			"internal/telemetry", "memory", "memory/cache", "memory/conversation", "memory/outcomes",
			"memory/outcomes/signs", "proxy/affinity", "proxy/auth", "proxy/backend", "proxy/budget",
			"proxy/chain", "proxy/choose", "proxy/contexts", "proxy/count", "proxy/decide",
			"proxy/decisionlog", "proxy/downstream", "proxy/engine", "proxy/exchange", "proxy/explain",
			"proxy/fault", "proxy/feedback", "proxy/framing", "proxy/guardrail", "proxy/headers",
			"proxy/keyring", "proxy/kv", "proxy/lengths", "proxy/mirror", "proxy/placement", "proxy/pool", "proxy/rate",
			"proxy/recall", "proxy/recent", "proxy/record", "proxy/redact", "proxy/relay",
			"proxy/resolve", "proxy/rewrite", "proxy/settings", "proxy/signals", "proxy/spans",
			"proxy/tools", "proxy/trial", "proxy/upstream", "proxy/warm", "rules", "stream/response",
		},
		"proxy/exchange": {
			"internal/openai", "proxy/auth", "proxy/backend", "proxy/decide", "proxy/guardrail",
			"proxy/mirror", "proxy/placement", "proxy/pool", "proxy/recall", "proxy/redact",
			"proxy/resolve", "proxy/rewrite", "proxy/tools", "proxy/trial", "stream/guard",
			"stream/response",
		},
		"proxy/spans": {
			"internal/openai", "internal/signal", "internal/telemetry", "proxy/decide",
			"proxy/exchange", "proxy/fault", "proxy/upstream", "rules", "stream/response",
		},
		"proxy/record": {
			"internal/openai", "internal/signal", "internal/telemetry", "memory/cache", "memory/outcomes",
			"memory/outcomes/signs", "proxy/affinity", "proxy/auth", "proxy/budget", "proxy/choose",
			"proxy/decide", "proxy/decisionlog", "proxy/downstream", "proxy/exchange", "proxy/fault",
			"proxy/feedback", "proxy/framing", "proxy/lengths", "proxy/mirror", "proxy/placement",
			"proxy/rate", "proxy/recall", "proxy/recent", "proxy/signals", "proxy/upstream", "rules",
			"stream/guard", "stream/response",
		},
		"proxy/relay": {
			"internal/openai", "internal/telemetry", "memory/cache", "proxy/affinity",
			"proxy/downstream", "proxy/exchange", "proxy/explain", "proxy/fault", "proxy/guardrail",
			"proxy/headers", "proxy/recall", "proxy/redact", "proxy/save", "proxy/upstream",
			"stream/guard", "stream/response", "stream/sse",
		},
		"proxy/settings": {"internal/openai", "internal/option", "proxy/engine", "proxy/lengths"},
		"proxy/signals": {
			"internal/openai", "internal/signal", "memory", "memory/blob", "proxy/contexts",
			"proxy/decisionlog", "proxy/fault", "proxy/resolve",
		},
		"proxy/decide": {
			"internal/openai", "internal/option", "internal/signal", "memory/cache",
			"memory/conversation", "memory/outcomes", "memory/outcomes/signs", "proxy/auth",
			"proxy/backend", "proxy/budget", "proxy/choose", "proxy/fault", "proxy/guardrail",
			"proxy/headers", "proxy/pool", "proxy/reasoning", "proxy/recall", "proxy/resolve",
			"proxy/signals", "rules",
		},
		"proxy/rewrite": {
			"internal/openai", "internal/signal", "memory/ledger", "memory/prefix", "proxy/backend",
			"proxy/choose", "proxy/decide", "proxy/engine", "proxy/fault", "proxy/lengths",
			"proxy/reasoning", "proxy/redact", "proxy/resolve", "proxy/settings", "proxy/tools",
			"rules",
		},
		"proxy/placement": {
			"internal/openai", "internal/telemetry", "memory", "proxy/affinity", "proxy/backend",
			"proxy/chain", "proxy/contexts", "proxy/decide", "proxy/engine", "proxy/fault", "proxy/kv",
			"proxy/pool", "proxy/resolve", "proxy/rewrite", "stream/response",
		},
		"proxy/trial": {
			"internal/openai", "proxy/backend", "proxy/decisionlog", "proxy/escalate",
			"proxy/guardrail", "proxy/redact", "proxy/rewrite", "proxy/upstream", "rules",
			"stream/response",
		},
		"proxy/warm": {
			"internal/openai", "internal/telemetry", "memory", "memory/prefix", "proxy/affinity",
			"proxy/backend", "proxy/fault", "proxy/framing", "proxy/placement", "proxy/resolve",
			"proxy/rewrite", "proxy/upstream", "stream/response",
		},
		"proxy/recent": {
			"memory/conversation", "proxy/backend", "proxy/choose", "proxy/decide", "proxy/decisionlog",
			"proxy/signals", "rules", "stream/response",
		},
		"proxy/explain": {
			"internal/signal", "memory/cache", "proxy/backend", "proxy/choose", "proxy/decide",
			"proxy/decisionlog", "proxy/downstream", "proxy/guardrail", "proxy/recall", "proxy/rewrite",
			"proxy/signals", "proxy/tools", "proxy/trial", "rules", "stream/response",
		},
		"proxy/mirror": {
			"internal/openai", "internal/telemetry", "proxy/backend", "proxy/decisionlog",
			"proxy/escalate", "proxy/framing", "proxy/rewrite", "proxy/upstream", "rules",
		},
		"proxy/feedback": {"internal/openai", "memory/outcomes/signs", "proxy/decide"},
		"proxy/backend": {
			"internal/openai", "internal/option", "memory/prefix", "proxy/affinity",
			"proxy/budget", "proxy/choose", "proxy/fault", "proxy/framing", "proxy/kv",
			"proxy/pool", "proxy/reasoning",
		},
		"proxy/downstream": {
			"internal/anthropic", "internal/openai", "internal/option", "proxy/auth", "proxy/backend",
			"proxy/budget", "proxy/fault", "proxy/headers", "proxy/rate", "proxy/redact", "proxy/upstream",
			"stream/messages", "stream/response",
		},
		"proxy/recall": {
			"internal/option", "internal/signal", "memory/cache", "proxy/upstream", "rules",
			"stream/guard", "stream/response",
		},
		"proxy/save": {
			"internal/openai", "memory", "memory/ledger", "memory/prefix", "proxy/resolve",
			"stream/check", "stream/guard", "stream/response",
		},
		"proxy/resolve": {
			"internal/openai", "internal/telemetry", "memory", "memory/cache", "memory/page",
			"memory/prefix", "proxy/auth", "proxy/contexts", "proxy/fault",
		},
		"proxy/upstream": {
			"internal/openai", "proxy/backend", "proxy/fault", "proxy/framing", "proxy/headers",
			"proxy/pool", "rules", "stream/response",
		},
		"proxy/guardrail": {
			"internal/openai", "internal/option", "internal/signal", "internal/telemetry", "memory",
			"memory/ledger", "proxy/fault", "proxy/resolve", "rules", "stream/check", "stream/evidence",
			"stream/guard", "stream/sse",
		},
		"proxy/auth":        {"internal/option", "proxy/budget"},
		"proxy/keyring":     {"internal/disk", "internal/openai", "internal/option", "proxy/auth"},
		"proxy/budget":      {"internal/option"},
		"proxy/escalate":    {"rules", "internal/openai", "stream/response"},
		"proxy/choose":      {"proxy/lengths", "internal/option", "rules", "internal/signal"},
		"proxy/contexts":    {"internal/openai", "internal/option", "internal/signal", "memory", "memory/ledger", "memory/page"},
		"proxy/decisionlog": {"internal/signal", "rules", "stream/response"},
		"proxy/fault": {
			"internal/openai", "internal/signal", "proxy/auth", "proxy/budget", "proxy/contexts",
			"proxy/rate", "proxy/redact",
		},
		"proxy/headers":   nil,
		"proxy/framing":   nil,
		"proxy/lengths":   {"internal/option", "proxy/reasoning"},
		"proxy/kv":        {"internal/option"},
		"proxy/rate":      nil,
		"proxy/pool":      {"internal/option", "internal/telemetry", "proxy/framing", "proxy/kv"},
		"proxy/reasoning": {"internal/option", "internal/openai"},
		"proxy/tools":     {"internal/bounded", "internal/openai", "internal/signal", "memory", "rules"},
		"proxy/engine": {
			"internal/openai", "internal/option", "proxy/affinity", "proxy/auth", "proxy/fault",
			"proxy/headers",
		},
		"proxy/count": {"proxy/backend", "proxy/framing", "proxy/pool"},
		"proxy/chain": {
			"internal/openai", "memory", "memory/blob", "memory/ledger", "memory/prefix",
			"proxy/affinity",
		},
		"proxy/redact":    {"internal/openai", "internal/signal", "stream/response", "stream/sse"},
		"stream/response": {"internal/openai", "stream/sse"},
		"stream/check": {
			"stream/claims", "stream/evidence", "stream/evidence/words", "stream/numeric",
			"stream/numeric/quantity",
		},
		"stream/claims":   nil,
		"stream/evidence": {"stream/claims", "stream/evidence/words", "stream/numeric"},
		"stream/guard":    {"stream/check", "stream/claims", "stream/evidence", "stream/response", "stream/sse"},
		"stream/messages": {"internal/anthropic", "internal/openai", "stream/response", "stream/sse"},
		"stream/numeric":  {"stream/evidence/words", "stream/numeric/quantity"},
		"stream/sse":      nil,

		"stream/evidence/words":   nil,
		"stream/numeric/quantity": nil,
		"memory":                  {"internal/openai", "memory/blob", "memory/ledger", "memory/page"},
		"memory/blob":             nil,
		"memory/board":            nil,
		"memory/cache":            {"internal/bounded", "internal/openai", "memory/cache/question"},
		"memory/cache/question":   nil,
		"memory/conversation":     {"internal/bounded"},
		"memory/ledger":           {"memory/blob"},
		"memory/outcomes":         {"internal/disk"},
		"memory/outcomes/signs":   nil,
		"memory/page":             {"memory/blob", "memory/ledger"},
		"memory/prefix":           {"internal/openai", "memory/blob", "memory/ledger"},
		"memory/redis":            {"memory/blob", "memory/ledger"},
		"proxy/affinity":          nil,
		"internal/simulator":      {"internal/option", "internal/simulator/kv"},
		"internal/simulator/kv":   {"internal/option"},
		"configs":                 nil,
		"models":                  nil,
		"internal/config": {
			"classify", "classify/knn", "classify/lexical", "gpu", "internal/hub/local",
			"internal/judge", "internal/option", "internal/signal", "internal/telemetry", "memory",
			"memory/page", "memory/redis", "proxy/auth", "proxy/backend", "proxy/decide",
			"proxy/decisionlog", "proxy/engine", "proxy/guardrail", "proxy/recall", "proxy/settings",
			"rules",
		},
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}", "signalbox/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		path, imports, _ := strings.Cut(strings.TrimSpace(line), ": ")
		pkg := strings.TrimPrefix(path, "signalbox/")
		want, checked := allowed[pkg]
		if !checked {
			continue
		}
		seen[pkg] = true
		for imp := range strings.FieldsSeq(imports) {
			if own, ok := strings.CutPrefix(imp, "signalbox/"); ok && own != "internal/script" && !slices.Contains(want, own) {
				t.Errorf("%s imports %s, allowed are %v", pkg, own, want)
			}
			if imp == "C" || imp == "github.com/yalue/onnxruntime_go" {
				if pkg != "gpu" && pkg != "gpu/dense" {
					t.Errorf("%s imports %s: cgo lives in gpu and gpu/dense", pkg, imp)
				}
			}
		}
	}
	for pkg := range allowed {
		if !seen[pkg] {
			t.Errorf("package %s is listed here and does not exist", pkg)
		}
	}
}
