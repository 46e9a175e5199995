package pii

import "strings"

// The top-level domains that are told from file names, methods and the words of a sentence: the
// country codes of ISO 3166-1 as far as IANA's root zone delegates them, and the generic ones with
// the most registrations. The whole zone has some 1,400; the rest are met behind a scheme or www
// only.
//
//nolint:gochecknoglobals // constant tables
var (
	countryTLDs = "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj " +
		"bm bn bo br bs bt bw by bz ca cc cd cf cg ch ci " +
		"ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm " +
		"fo fr ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy " +
		"hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw " +
		"ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml " +
		"mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe " +
		"pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd " +
		"se sg sh si sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr " +
		"tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw " +
		"рф 中国 中國 香港 台灣 한국 भारत москва рус"
	genericTLDs = "com org net edu gov mil int arpa info biz name pro aero coop museum jobs mobi " +
		"travel tel asia cat post xxx app dev page blog shop store online " +
		"site website web space tech cloud digital agency studio design media news live life " +
		"world today group team company solutions services systems network " +
		"email support help xyz top club vip icu fun win bid loan work works wiki art music film " +
		"photo photos gallery health care clinic dental doctor " +
		"bank finance money insurance law legal attorney consulting academy school university " +
		"education science engineering energy green eco bio farm " +
		"food pizza bar cafe restaurant kitchen house homes land estate properties rent auto " +
		"cars bike taxi tours voyage holiday hotel flights city town " +
		"london paris berlin hamburg koeln wien amsterdam nyc tokyo moscow istanbul africa swiss " +
		"scot wales bayern ruhr brussels miami vegas boston " +
		"google youtube amazon apple microsoft bmw audi sap link click zone plus one global " +
		"international foundation ngo ong charity gives social community " +
		"chat game games casino poker bet sport fit yoga dance fashion beauty hair jewelry watch " +
		"toys kids baby family love dating wedding " +
		"ai io onl moe ninja guru expert coach tips guide review reviews directory events " +
		"tickets press report tv radio video stream download software codes " +
		"express delivery supply tools parts equipment industries construction builders " +
		"contractors plumbing repair cleaning garden solar " +
		"gmbh ltd llc inc srl saarland ist versicherung immo haus reise kaufen jetzt istanbul"
	// wordTLDs are words of a language, extensions of files or names of methods as well. A bare
	// name that ends in one needs www, a scheme, or a word before it that says host.
	wordTLDs = "ac ad am an as at be by do fm mr ms gg id im in is it la ma me my no of or pa pm " +
		"pr re se si so st su to tv us va vi ws de es et ne na ni " +
		"name pro post web page app live life world today team group work works link click zone " +
		"plus one global chat game games watch kids family love " +
		"art music film photo news media store site space design support help city town bar food " +
		"green energy science law legal money bank care health fit " +
		"tools parts report video stream download software codes email tel int cat social events " +
		"review press school guide tips cars bike auto house land " +
		"rent land top win fun bet vip club network systems services solutions company digital " +
		"cloud tech online blog shop website studio agency " +
		"garden cleaning repair solar delivery express supply equipment directory tickets radio " +
		"coach expert paris london berlin apple google amazon"
	// fileTLDs are extensions of files that no word before makes a host, short of www or a scheme.
	fileTLDs = "md py rs sh pl ps cc so ml mm ai io py tf vi cs ps do app zip mov bat properties"
)

// tlds holds for each domain whether a bare name may end in it.
var tlds = func() map[string]tldKind { //nolint:gochecknoglobals // constant table
	m := make(map[string]tldKind)
	set := func(list string, add tldKind) {
		for w := range strings.FieldsSeq(list) {
			m[w] |= add
		}
	}
	set(countryTLDs, tldKnown)
	set(genericTLDs, tldKnown)
	for w := range strings.FieldsSeq(wordTLDs) {
		if m[w] != 0 {
			m[w] |= tldWord
		}
	}
	for w := range strings.FieldsSeq(fileTLDs) {
		if m[w] != 0 {
			m[w] |= tldFile
		}
	}
	return m
}()

type tldKind uint8

const (
	tldKnown tldKind = 1 << iota
	tldWord
	tldFile
)

func tldOf(tld string) tldKind {
	if k, ok := tlds[tld]; ok {
		return k
	}
	if strings.HasPrefix(tld, "xn--") { // an internationalised domain (RFC 5891, section 2.3.1)
		return tldKnown
	}
	return tlds[strings.ToLower(tld)]
}

func isTLD(tld string) bool    { return tldOf(tld) != 0 }
func bareTLD(tld string) bool  { return tldOf(tld) == tldKnown }
func fileLike(tld string) bool { return tldOf(tld)&tldFile != 0 }
