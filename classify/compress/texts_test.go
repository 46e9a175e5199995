package compress_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// kinds are the kinds of text that the bars are measured on.
var kinds = []string{"prose", "code", "json lines", "logs", "chinese"}

// generated is a text of one kind and about size bytes, the same for the same arguments.
func generated(kind string, size int, seed uint64) string {
	g := generator{rand.New(rand.NewPCG(seed, 7))}
	var b strings.Builder
	b.Grow(size + 1024)
	for n := 0; b.Len() < size; n++ {
		switch kind {
		case "prose":
			for range 3 + g.IntN(5) {
				b.WriteString(g.sentence())
				b.WriteByte(' ')
			}
			b.WriteString("\n\n")
		case "code":
			b.WriteString(g.function(n))
		case "json lines":
			fmt.Fprintf(&b, "{\"id\": %d, \"user\": \"u%04x\", \"channel\": %q, \"text\": %q, \"score\": %.3f}\n",
				n, g.IntN(1<<16), g.pick("web", "app", "phone"), g.sentence(), g.Float64())
		case "logs":
			b.WriteString(g.entry(n))
		case "chinese":
			for range 2 + g.IntN(5) {
				b.WriteString(g.chinese())
			}
			b.WriteString("\n\n")
		default:
			panic(kind)
		}
	}
	return b.String()
}

type generator struct{ *rand.Rand }

func (g generator) pick(words ...string) string { return words[g.IntN(len(words))] }

func (g generator) noun() string {
	return g.pick("river", "valley", "signal", "engine", "harbour", "library", "market", "garden", "bridge", "theory",
		"sample", "reaction", "membrane", "contract", "village", "station", "measurement", "temperature", "orbit",
		"museum", "winter", "student", "archive", "machine", "forest", "island", "committee", "language", "protein")
}

func (g generator) adjective() string {
	return g.pick("quiet", "northern", "ancient", "narrow", "reliable", "modern", "acid", "careful", "local", "bright",
		"earlier", "shallow", "complex", "simple", "public", "frozen", "distant", "regular")
}

func (g generator) verb() string {
	return g.pick("carries", "changes", "reaches", "follows", "shapes", "needs", "measures", "crosses", "feeds",
		"explains", "limits", "supports", "replaces", "surrounds", "shows")
}

func (g generator) sentence() string {
	switch g.IntN(6) {
	case 0:
		return fmt.Sprintf("In %d the %s %s %s the %s.", 1800+g.IntN(220), g.adjective(), g.noun(), g.verb(), g.noun())
	case 1:
		return fmt.Sprintf("Why does a %s %s need its %s, and what happens to the %s?", g.adjective(), g.noun(), g.noun(), g.noun())
	case 2:
		return fmt.Sprintf("You should not forget that every %s %s a %s, as was explained above.", g.noun(), g.verb(), g.noun())
	default:
		return fmt.Sprintf("The %s %s of the %s %s a %s %s, which %s the %s.", g.adjective(), g.noun(), g.noun(), g.verb(),
			g.adjective(), g.noun(), g.verb(), g.noun())
	}
}

func (g generator) function(n int) string {
	a, b := g.noun(), g.noun()
	return fmt.Sprintf(`// %s%d returns the %s of a %s, or an error when the %s is not there.
func %s%d(%s []byte, limit int) (%s int, err error) {
	for i, c := range %s {
		if c == '%c' && i > limit {
			return 0, fmt.Errorf("%s: too long: %%d", i)
		}
		%s += int(c) * %d
	}
	return %s, nil
}

`, a, n, b, g.noun(), a, a, n, a, b, a, 'a'+rune(g.IntN(26)), a, b, g.IntN(100), b)
}

func (g generator) entry(n int) string {
	at := fmt.Sprintf("2026-03-%02dT%02d:%02d:%02d.%03dZ", 1+n/3000%28, n/120%24, n/2%60, n*30%60, g.IntN(1000))
	switch g.IntN(5) {
	case 0:
		return fmt.Sprintf("%s ERROR db: query failed after %d ms: connection reset by 10.0.%d.%d\n", at, g.IntN(9000), g.IntN(256), g.IntN(256))
	case 1:
		return fmt.Sprintf("%s WARN cache: %d keys evicted from shard %d\n", at, g.IntN(500), g.IntN(16))
	default:
		return fmt.Sprintf("%s INFO http: GET /v1/%s/%d status=200 bytes=%d\n", at, g.noun(), g.IntN(1e6), g.IntN(1e5))
	}
}

func (g generator) chinese() string {
	who := g.pick("老师", "工程师", "北方的河流", "这座城市", "实验室", "图书馆", "科学家", "市场", "学生们", "古老的桥")
	does := g.pick("改变了", "影响着", "解释了", "支持", "测量", "需要", "记录了", "保护", "连接着", "研究")
	what := g.pick("周围的环境", "化学反应的速度", "历史的进程", "居民的生活", "温度和压力", "植物的生长", "机器的效率", "语言的结构", "行星的轨道", "经济的发展")
	return who + does + what + g.pick("。", ",这是很重要的。", "吗?", ",因为时间不够。")
}
