package lean

import "strings"

// cue says what a word does in a turn.
type cue uint8

const (
	pronoun cue = 1 << iota // stands for something that was said
	opener                  // begins a reply
	pointer                 // points at an answer, or asks to change it
	filler                  // says nothing by itself
	owner                   // says whose answer is meant
	reply                   // an answer
)

// cues are the words that have one, in lower case.
//
//nolint:gochecknoglobals // constant table
var cues = func() map[string]cue {
	m := map[string]cue{}
	for what, lists := range map[cue][]string{
		pronoun: pronouns[:], opener: openers[:], pointer: pointers[:], filler: fillers[:],
		owner: {owners}, reply: {replies},
	} {
		for _, list := range lists {
			for w := range strings.FieldsSeq(list) {
				m[w] |= what
			}
		}
	}
	return m
}()

//nolint:gochecknoglobals,misspell // constant tables: an entry a language, as in the package comment
var (
	pronouns = [...]string{
		`it its it's this that these those they them their theirs he him his she her hers one ones
		itself themselves that's`,
		`er sie es ihn ihm ihr ihre ihren ihrer dies diese dieser dieses diesem diesen das jene jener
		davon dafür damit daran darin darüber dazu dabei deren dessen`,
		`il elle ils elles lui leur leurs cela ceci ça c'est ce cet cette ces celui celle ceux en y`,
		`él ella ello ellos ellas eso esto ese esa esos esas este esta estos estas lo le les aquello su
		sus`,
		`lui lei esso essa essi loro questo questa questi queste quello quella quelli ciò ne`,
		`ele ela eles elas isso isto esse essa esses essas este esta estes estas aquilo dele dela disso`,
		`het hij zij hem haar hun dit dat deze die ervan ermee erin eraan daarvan daarmee`,
		`он она оно они его её ее их это этот эта эти этого этой этом тот та те того`,
		`它 他 她 它们 他们 这 那 这个 那个 这些 那些 其`,
		`それ これ あれ その この あの そこ`,
	}
	openers = [...]string{
		`and but so then now also why or how's ok okay great thanks thank yes no yeah sure really
		instead next finally additionally however given using based what's if let's`,
		`und aber also dann jetzt nun auch warum wieso weshalb oder ok okay danke super ja nein doch
		wirklich stattdessen außerdem wenn falls gut bitte`,
		`et mais donc alors maintenant aussi pourquoi ou ok merci super oui non vraiment plutôt ensuite
		si peux-tu d'accord`,
		`y pero entonces ahora también porqué o ok vale gracias sí no realmente además si por bien`,
		`e ma allora adesso ora anche perché o ok grazie sì no davvero invece poi se bene quindi`,
		`e mas então agora também por ou ok obrigado obrigada sim não realmente depois se bem porquê`,
		`en maar dus dan nu ook waarom of ok bedankt ja nee echt daarna als goed`,
		`и а но так тогда теперь ещё еще также почему зачем или ок спасибо да нет если хорошо`,
		`为什 那么 那 好的 谢谢 现在 然后 还有 但是 而且 如果 继续`,
		`なぜ じゃ では それ でも そし 今度 次に もっ`,
	}
	pointers = [...]string{
		`above previous previously earlier again same former latter mentioned said response answer
		answers answered reply explanation rewrite rephrase reword summarize summarise shorten elaborate
		continue translate simplify expand revise edit condense other another others else more further
		instead example examples step steps point points part version last first second third both
		either still too already sentence paragraph bullet words shorter longer simpler detail details`,
		`oben vorherige vorherigen vorhin nochmal noch erneut gleiche gleichen genannt gesagt antwort
		erklärung umschreiben formuliere zusammenfassen kürzen kürzer länger einfacher weiter übersetze
		vereinfache anderes andere anderen mehr stattdessen beispiel beispiele schritt schritte punkt
		punkte teil letzte letzten erste ersten zweite zweiten dritte dritten beide beiden immer schon
		satz absatz wörter genauer ausführlicher`,
		`dessus précédent précédente encore même mentionné réponse explication réécris reformule résume
		raccourcis développe continue traduis simplifie autre autres plus davantage plutôt exemple
		exemples étape étapes point points partie dernier dernière premier première deuxième second
		seconde troisième deux aussi déjà phrase paragraphe mots court long simple détail détails`,
		`arriba anterior anteriores otra vez mismo misma mencionado respuesta explicación reescribe
		reformula resume acorta amplía continúa traduce simplifica otro otra otros otras más ejemplo
		ejemplos paso pasos punto puntos parte último última primero primera primer segundo segunda
		tercero tercera ambos todavía frase párrafo palabras corto largo sencillo detalle detalles`,
		`sopra precedente ancora stesso stessa risposta spiegazione riscrivi riformula riassumi accorcia
		continua traduci semplifica altro altra altri altre più esempio esempi passo passaggio punto
		punti parte ultimo ultima primo prima secondo seconda terzo terza entrambi frase paragrafo
		parole breve lungo semplice dettaglio dettagli`,
		`acima anterior novamente mesmo mesma resposta explicação reescreva reformule resuma encurte
		continue traduza simplifique outro outra outros outras mais exemplo exemplos passo passos ponto
		pontos parte último última primeiro primeira segundo segunda terceiro terceira ambos ainda frase
		parágrafo palavras curto longo simples detalhe detalhes`,
		`boven vorige nogmaals opnieuw zelfde antwoord uitleg herschrijf vat samen korter langer
		eenvoudiger verder vertaal ander andere meer voorbeeld voorbeelden stap stappen punt punten deel
		laatste eerste tweede derde beide zin alinea woorden`,
		`выше предыдущий предыдущем снова опять ещё еще тот же ответ ответе объяснение перепиши
		сократи продолжай переведи упрости другой другие больше подробнее пример примеры шаг шаге пункт
		часть последний первый второй вторую третий оба короче длиннее проще`,
		`上面 前面 刚才 再次 同样 回答 解释 改写 总结 缩短 翻译 简化 其他 更多 例子 步骤 一步 第二 第三 详细`,
		`上の 前の もう 一度 同じ 答え 説明 書き 要約 短く 続け 翻訳 簡単 他の 例を 二番 詳し`,
	}
	fillers = [...]string{
		`the a an of to in on at for with by from is are was were be been do does did can could would
		should will what which who when where why how i me my we ours you your our and or but if then so
		as not no there please tell give make about into than some any have has had just like also`,
		`der die den dem des ein eine einen einer eines einem und oder aber wenn dann ist sind war waren
		wird werden kann kannst könnte können soll sollte mit von für auf aus bei nach über unter zum
		zur was wer wie wann welche welcher welches nicht bitte mich mir dich dir mein meine gibt haben`,
		`les des une dans pour avec sans sont était être avoir peut peux pouvez quoi quel quelle quels
		quelles comment quand dans pas vous nous mon mes votre vos est-ce s'il plaît donne`,
		`los las una unos unas para con sin son era ser haber puede puedes podría como cómo qué cuál
		cuáles quién cuándo dónde favor dame dime hacer tiene hay`,
		`gli una per con senza sono era essere avere può puoi potresti come cosa quale quali quando dove
		favore della delle degli nella dello fare`,
		`uma para com sem são era ser ter pode podes você como qual quais quando onde favor fazer está
		dos das pelo pela`,
		`een voor met zonder zijn was waren kan kun wordt worden wat wie hoe wanneer welke waar niet alsjeblieft`,
		`что как где когда какой какая какие для или если быть был была было может можно пожалуйста меня мне`,
		`什么 怎么 可以 我们 你们 请问`,
		`です ます する した ある いる こと`,
	}
)

// Whose answer, and the answer: of all languages.
const (
	owners = `your that this previous last deine deiner deinen ihre ihrer ta votre cette tu su esa esta
		la tua sua quella je jouw твой твоем твоём этот`
	replies = `answer response reply explanation information output solution summary antwort erklärung
		lösung zusammenfassung réponse explication solution résumé respuesta explicación solución
		resumen risposta spiegazione soluzione riassunto resposta explicação solução resumo antwoord
		uitleg oplossing ответ ответе объяснение решение`
)

// askWith and askAbout begin a question that goes on: "what about", "and how about".
//
//nolint:gochecknoglobals // constant tables
var (
	askWith = map[string]bool{
		"what": true, "how": true, "was": true, "wie": true, "qué": true, "que": true, "e": true,
		"et": true, "y": true, "und": true, "and": true, "quid": true, "а": true, "и": true, "hoe": true,
		"wat": true,
	}
	askAbout = map[string]bool{
		"about": true, "if": true, "ist": true, "sieht": true, "wäre": true, "pour": true, "para": true,
		"für": true, "for": true, "in": true, "en": true, "pasa": true, "per": true, "se": true,
		"wenn": true, "si": true, "для": true, "с": true, "zit": true, "als": true,
	}
)
