package hostile

import (
	"strings"
	"time"
)

// syntax are the notations of server-sent events (WHATWG HTML, section 9.2).
func syntax() map[string]play {
	pieces := func(split func(stream string) []string) play {
		return func(x *exchange) bool {
			if !x.head() {
				return false
			}
			for _, p := range split(x.event(0, "héé漢字🙂") + x.event(1, "two") + Finish + Done) {
				if !x.chunk(p) || !x.pause(x.wait("d", 0)) {
					return false
				}
			}
			return x.write(End)
		}
	}
	whole := func(change func(string) string) play {
		return pieces(func(s string) []string { return strings.SplitAfter(change(s), "\n\n") })
	}
	ending := func(s, eol string) string { return strings.ReplaceAll(s, "\n", eol) }
	extra := func(events ...string) play {
		return whole(func(s string) string { return strings.Join(events, "") + s })
	}
	chunk := func(content string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"` + content + `"}}]}` + "\n\n"
	}
	return map[string]play{
		"crlf": pieces(func(s string) []string { return strings.SplitAfter(ending(s, "\r\n"), "\r\n\r\n") }),
		"cr":   pieces(func(s string) []string { return strings.SplitAfter(ending(s, "\r"), "\r\r") }),
		"mixed-eol": whole(func(s string) string {
			parts := strings.SplitAfter(s, "\n\n")
			return ending(parts[0], "\r\n") + ending(parts[1], "\r") + strings.Join(parts[2:], "")
		}),
		"crlf-split": pieces(func(s string) []string { return strings.SplitAfter(ending(s, "\r\n"), "\r") }),
		"bom":        whole(func(s string) string { return "\ufeff" + s }),
		"bom-split": pieces(func(s string) []string {
			return []string{"\xef", "\xbb", "\xbf", s}
		}),
		"comments": whole(func(s string) string {
			first, rest, _ := strings.Cut(s, "\n\n")
			return ": ping\n\n:\n" + first + "\n: within\n\n" + ":\n\n" + rest
		}),
		"fields":    extra("event: chunk\nid: 7\nretry: 10\nunknown: x\ndata\n\n", "id: a\x00b\n"+chunk("f"), "retry: 3000\n\n"),
		"multiline": extra("data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"m\"}}]}\n\n"),
		"nospace":   whole(func(s string) string { return strings.ReplaceAll(s, "data: ", "data:") }),
		"split1":    pieces(func(s string) []string { return strings.Split(s, "") }),
		"split-bytes": pieces(func(s string) []string {
			var out []string
			for _, b := range []byte(s) {
				out = append(out, string([]byte{b}))
			}
			return out
		}),
		"coalesced": func(x *exchange) bool {
			var b strings.Builder
			for i := range x.num("n", 500) {
				b.WriteString(x.event(i, word(i)))
			}
			return x.head() && x.chunk(b.String()+Finish+Done) && x.write(End)
		},
		"lone-surrogate": extra(chunk(`\ud83d`), chunk(`\ude42`)),
		"invalid-utf8":   extra(chunk("\xff\xfe\xc3")),
		"nul":            extra(chunk(`a\u0000b`), chunk("a\x00b")),
		"escape-zoo":     extra(chunk(`\u0000\/\b\f\u00e9\uD83D\uDE42`)),
		"huge-line": func(x *exchange) bool {
			return x.head() && x.chunk(x.event(0, strings.Repeat("x", x.size("bytes", 4<<20)))) && x.finish()
		},
		"trailers": func(x *exchange) bool {
			return x.write(strings.Replace(StreamHead, "\r\n\r\n", "\r\nTrailer: X-Usage\r\n\r\n", 1)) && x.events(2) && x.chunk(Finish) && x.chunk(Done) &&
				x.write("0\r\nX-Usage: 42\r\n\r\n")
		},
	}
}

// floods are streams without end, or almost without.
func floods() map[string]play {
	pour := func(most int, first, piece string) play {
		return func(x *exchange) bool {
			if !x.head() || first != "" && !x.chunk(first) {
				return false
			}
			for left := x.size("max", most); left > 0; left -= len(piece) {
				if !x.chunk(piece) {
					return false
				}
			}
			return x.finish()
		}
	}
	return map[string]play{
		"endless-line": pour(1<<30, "data: ", strings.Repeat("A", 32<<10)),
		"flood": func(x *exchange) bool {
			event := x.event(0, strings.Repeat("x", x.size("bytes", 1000)))
			return pour(1<<30, "", event)(x)
		},
		"flood-comments":    pour(2<<20, "", strings.Repeat(":\n", 64)),
		"flood-empty-lines": pour(1<<20, "", strings.Repeat("\n", 64)),
		// drip-comments keeps a stream alive by comments only.
		"drip-comments": func(x *exchange) bool {
			if !x.before() {
				return false
			}
			for range x.num("n", 100) {
				if !x.chunk(": still here\n\n") || !x.pause(x.wait("d", 20*time.Millisecond)) {
					return false
				}
			}
			return x.finish()
		},
	}
}
