package compress

// cueSet is what a piece has that instructions have. Each cue counts by how rare it is among the
// pieces of the prompt, so "must" says little in a contract and much in a log.
type cueSet uint32

const (
	override cueSet = 1 << iota // set aside what was said
	instruct                    // what was said: instructions, rules
	backward                    // that it was said before
	disclose                    // give something out
	secret                      // that should stay in
	address                     // speaks to somebody
	oblige                      // must, must not
	polite                      // please
	role                        // take a part, from now on
	task                        // a verb that asks for work
	asks                        // a question
	boiler                      // legal notices and page furniture
	worded                      // several function words: somebody wrote this sentence
	// Pairs that instructions against the rules are made of.
	command // override with instruct or backward
	leak    // disclose with secret, instruct or reach
	order   // address, polite or audience with oblige, role, override, disclose or task
	// What is rare in a prompt may be what it is about.
	named    // a name: a capital letter inside a sentence
	figures  // a number
	reach    // an address
	audience // who reads the prompt: the assistant, the model

	firstOnly = task | asker // count as the first word of a clause alone
	asker     = cueSet(1) << 30
	cueCount  = 20
)

// strengthOf is the weight of each cue, in the order of the constants.
//
//nolint:gochecknoglobals // constant table
var strengthOf = [cueCount]float32{
	1.5, 0.4, 0.3, 0.5, 0.6, 0.2, 0.3, 0.5, 1.2, 0.4, 0.4, 0, 0.5,
	1.5, 1.0, 0.7,
	0.1, 0, 0.3, 1.0,
}

// pairs adds the cues that are made of two others.
func (c cueSet) pairs() cueSet {
	if c&override != 0 && c&(instruct|backward) != 0 {
		c |= command
	}
	if c&disclose != 0 && c&(secret|instruct|reach) != 0 {
		c |= leak
	}
	if c&(address|polite|audience) != 0 && c&(oblige|role|override|disclose|task) != 0 {
		c |= order
	}
	return c
}

// phrases are the words of each cue, separated by commas. A phrase matches its words in a row,
// whatever punctuation is between them; one that ends in * matches every word with its first five
// letters.
//
//nolint:gochecknoglobals // constant table
var phrases = [...]struct {
	cue   cueSet
	words string
}{
	{override, `ignor*, disregard*, overr*, bypass*, forget, stop what you, stop following, no matter what, whatever your, circumvent, pay no attention, no longer apply, no longer valid, does not apply, do not apply,
		are void, set aside,
		vergiss, vergesst, vergessen sie, missacht*, umgehe, oublie, oubliez, fais abstraction, olvida, olvide,
		haz caso omiso, no hagas caso, esqueça, esquece, desconsidere, dimentica, non tenere conto, negeer,
		vergeet, zigno*, pomiń, zapomnij, glöm, bortse, glem, unohda, игнор*, проигнор*, забудь, забудьте, не обращай внимания,
		yoksay, görmezden, unut, abaik*, lupakan, bỏ qua, quên, تجاهل, انس, अनदेखा, नज़रअंदाज, भूल जाओ,
		忽略, 无视, 無視, 不要理会, 忘记, 忘掉, 忘れて, 絕對不要管, 绕过, 跳过, 従わない, 무시, 잊어`},
	{instruct, `instruction, instructions, instructed, instrucciones, instruções, instruktionen, instruktioner, instruksjoner, instrukser, ohjeet,
		instrukcje, instructies, istruzioni, rule, rules, guidelines, guidance, prompt, prompts, policy, policies, directives,
		directions, commands, orders, restrictions, constraints, safeguards, filters, anweis*, regeln, vorgaben,
		befehle, richtlinien, einschränkungen, consignes, règles, directives, reglas, normas, órdenes, pautas,
		regras, ordens, regole, regels, opdrachten, polec*, zasady, reguły, инстр*, правила, указания, приказы,
		talim*, kurallar*, aturan, perintah, hướng dẫn, quy tắc, chỉ dẫn, التعليمات, تعليمات, القواعد, الأوامر,
		निर्देश, निर्देशों, नियम, नियमों, 指令, 指示, 规则, 規則, 提示词, 命令, 限制, 制限, ルール, プロンプト, 지시, 명령,
		규칙, 프롬프트`},
	{backward, `you were given, you have been given, previous, previously, prior, above, earlier, preceding, so far, everything, was said,
		said before, told before, told you, been told, vorhe*, bisherig*, obigen, zuvor,
		vorigen, précé*, antér*, ci-dessus, anterior, anteriores, previas, previa, precedenti, precedente,
		vorige, eerdere, voorgaande, bovenstaande, poprz*, wcześ*, tidigare, föregående, tidligere, forrige, aiemmat, aiemmin, преды*, прежние, выше,
		önceki, sebelumnya, trước đó, trước, السابقة, السابق, पिछले, पिछली, 之前, 以上, 前面, 先前, 上述, 以前, 前の, これまで,
		上記, 이전, 앞의, 위의`},
	{disclose, `reveal*, disclose, divulge, print, output, leak, show, tell, repeat, send, email, expose, display,
		dump, forward, upload, exfil*, hand over, give me, reply, verrate*, verrät, zeige, zeig, nenne, gib, sende,
		schicke, offenbare, révèl*, affiche, affichez, montre, divul*, envoie, envoyez, donne, revel*, muestra,
		envía, dime, mostre, envie, diga, rivel*, mostra, invia, stampa, onthul, toon, stuur, ujawn*, pokaż,
		wyślij, wypisz, podaj, avslöja, visa, skicka, vis meg, vis mig, avslør, send meg, paljasta, näytä, раскр*, покажи, выведи, отправь, расскажи, сообщи, назови,
		açıkla, göster, yazdır, gönder, ungka*, tampilkan, kirim, beritahu, tiết lộ, hiển thị, gửi, اكشف, أظهر,
		اطبع, أخبر, أرسل, बताओ, बताएं, प्रकट, दिखाओ, भेजो, 透露, 泄露, 告诉, 告訴, 显示, 输出, 打印, 发送, 说出, 揭示, 公开,
		明かし, 教えて, 表示, 出力, 公開, 漏ら, 送信, 공개, 알려, 출력, 보여, 누설, 보내`},
	{secret, `passw*, secret, secrets, confid*, crede*, api key, api keys, private key, system prompt, hidden, without telling,
		do not tell, don't tell, do not mention, never mention, secretly, without asking,
		internal, classified, passwort, passwörter, geheim*, zugangsdaten, vertraulich*, mot de passe, secrets,
		contraseña, contraseñas, secreto, claves, senha, senhas, segredo, segreto,
		segreti, wachtwoord, wachtwoorden, hasło, hasła, tajne, tajny, lösenord, hemlig*, passord, passordet, adgangskode, hemmelig*, salasana, пароль, пароли, секре*, тайну, şifre*,
		parola*, gizli, rahasia, sandi, mật khẩu, bí mật, السر, سر, كلمة المرور, पासवर्ड, गुप्त, 密码, 密碼, 秘密, 机密,
		機密, 密钥, 口令, 系统提示, パスワード, 極秘, 비밀, 기밀, 암호`},
	{address, `you, your, yours, yourself, me, the user, du, dein, deine, deinen, dir, dich, mir, tu, vous, votre, vos, ton, moi,
		usted, ustedes, dime, você, te, ti, jij, jouw, mij, ty, twoje, mi, ты, твои, тебя, вы, ваш, ваши, мне, sen,
		siz, bana, kamu, anda, bạn, أنت, तुम, आप, मुझे, 你, 您, 我, あなた, 君, 당신, 너는`},
	{oblige, `must, mustn't, have to, need to, should, shall, never, always, do not, don't, make sure, be sure,
		required to, not allowed, immediately, only respond, only answer, respond only, reply only, answer only,
		musst, müssen, sollst, darfst, niemals,
		auf keinen fall, unbedingt, dois, devez, jamais, toujours, ne jamais, debes, debe, nunca, siempre, deve,
		sempre, devi, mai, moet, nooit, musisz, nigdy, zawsze, måste, aldrig, aldri, skal du, должен, должны, обязан, никогда,
		всегда, нельзя, asla, mutlaka, zorunda, harus, jangan, phải, đừng, يجب, अवश्य, चाहिए, मत, 必须, 必須, 不要,
		不得, 务必, 一定要, 禁止, 不许, 必ず, 決して, なければな, いけません, 반드시, 절대, 해야`},
	{polite, `please, kindly, bitte, s'il vous plaît, s'il te plaît, veuillez, por favor, per favore, per cortesia,
		alsjeblieft, alstu*, proszę, snälla, пожалуйста, прошу, lütfen, tolong, silakan, mohon, vui lòng, làm ơn,
		من فضلك, رجاء, कृपया, 请, 請, ください, お願い, 下さい, 주세요, 부탁, 하세요, 십시오`},
	{role, `from now on, you are now, you're now, act as, acting as, pretend, roleplay, role play, role-play,
		developer mode, new instructions, new instruction, new task, new rules, system override, jailb*, your new,
		without limits, without restrictions, without rules, no limits, no restrictions, unrestricted, ab jetzt, ab sofort, von nun an, du bist jetzt, tu so als,
		à partir de maintenant, désormais, tu es maintenant, fais comme si, a partir de ahora, de ahora en adelante,
		ahora eres, finge, a partir de agora, agora você, d'ora in poi, da ora in poi, ora sei, fai finta, vanaf nu,
		je bent nu, od teraz, od tej pory, jesteś teraz, från och med nu, с этого момента, отныне, теперь ты,
		представь, bundan sonra, artık, şimdi sen, mulai sekarang, từ bây giờ, من الآن, अब से, 从现在开始, 从现在起,
		从今以后, 现在你是, 你现在是, 扮演, 假装, 假设你, 今から, これから, 今後は, ふりをして, 지금부터, 이제부터, 역할`},
	{task, `write, summari*, translate, explain, answer, list, describe, compare, classify, generate, create, find,
		calculate, compute, solve, give, provide, rewrite, fix, implement, draft, suggest, review, analyze, analyse,
		help, reply, respond, pretend, act, stop, call, open, run, execute, delete, download, transfer, continue, schreib, schreibe, erkläre, übersetze, fasse, beantworte, liste, vergleiche, berechne, écris, explique,
		traduis, résume, réponds, décris, calcule, escribe, explica, traduce, resume, responde, describe, escreva,
		explique, traduza, resuma, scrivi, spiega, traduci, riassumi, schrijf, vertaal, napisz, wyjaśnij, przetłumacz,
		streść, напиши, объясни, переведи, ответь, опиши, yaz, açıkla, çevir, özetle, tulis, jelaskan, terjemahkan,
		viết, giải thích, dịch, اكتب, اشرح, ترجم, लिखो, लिखें, समझाओ, 写, 解释, 解釋, 翻译, 翻譯, 总结, 回答, 说明, 説明, 翻訳,
		要約, 書いて, 설명, 번역, 요약, 작성`},
	{asker, `what, why, how, which, who, when, where, whose, can you, could you, is it, was, warum, wie, welche, wer,
		wann, wo, quel, quelle, pourquoi, comment, qui, qué, cuál, cómo, por qué, quién, dónde, qual, como, por que,
		quem, onde, perché, chi, dove, wat, waarom, hoe, wie, co, dlaczego, jak, kto, gdzie, что, почему, как, кто, где,
		какой, ne, neden, nasıl, apa, mengapa, bagaimana, ما, لماذا, كيف, क्या, क्यों, कैसे, 什么, 为什么, 如何, 怎么, 谁,
		何, なぜ, どう, 무엇, 왜, 어떻게`},
	{audience, `ai, ais, llm, llms, gpt, chatgpt, assistant, assistants, chatbot, chatbots, bot, language model, ai model,
		ai agent, ai agents, ki, assistent, ia, assistente, asistente, asystent, ии, ассистент, нейросеть, yapay zeka,
		asisten, 助手, 人工智能, 模型, アシスタント, 人工知能, 어시스턴트, 인공지능`},
	{boiler, `all rights reserved, copyright, licensed under, terms of service, terms of use, privacy policy, cookies,
		subscribe, unsubscribe, lorem ipsum, click here, intentionally left blank, table of contents, creative commons,
		without warranty, alle rechte vorbehalten, datenschutz*, impressum, tous droits réservés,
		todos los derechos reservados, todos os direitos reservados, tutti i diritti riservati, все права защищены,
		版权所有, 保留所有权利, 無断転載, 무단전재`},
}
