package compress

// languages are the function words of the languages that are told apart: words that join and point
// rather than name. The order gives piece.language. Chinese and Japanese are their characters of
// grammar.
//
//nolint:gochecknoglobals // constant table
var languages = [...]struct{ code, words string }{
	{"en", `a about after again all also am an and any are as at be because been being both but by can could did
		do does doing down during each few for from further had has have having he her here hers him his how i
		if in into is it its just me more most my no nor not of off on once only or other our out over own same
		she should so some such than that the their them then there these they this those through to too under
		until up us very was we were what when where which while who whom why will with would you your`},
	{"de", `aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass dein dem den der des die
		dies diese dieser dieses doch du durch ein eine einem einen einer eines er es für haben hat hatte hier ich
		ihm ihn ihr im in ist ja jede kann kein keine können man mehr mein mit mir nach nicht noch nun nur ob
		oder ohne schon sein sich sie sind so um und uns unter vom von vor war waren was wenn werden wie wir wird
		wo wurde zu zum zur zwischen über`},
	{"fr", `au aux avec avait ce ces cette ceux comme d dans de des du elle elles en entre est et été être eux fait
		il ils je l la le les leur leurs lui ma mais me même mes moi mon ne nos notre nous on ont ou où par pas
		plus pour qu que qui s sa sans se ses si son sont sous sur ta te tes toi ton tous tout tu un une vos
		votre vous y à`},
	{"es", `a al algo ante antes como con contra cual cuando de del desde donde durante e el ella ellas ellos en
		entre era es esa ese eso esta está este esto estos fue ha hasta hay la las le les lo los me mi mucho muy
		más nada ni no nos nosotros o os otra otro para pero poco por porque que quien se ser si sin sobre son
		su sus sí también tanto te tiene todo todos tu un una uno y ya yo`},
	{"pt", `a ao aos aquela aquele as até com como da das de dela dele do dos e ela elas ele em entre era
		essa esse esta este eu foi foram há isso isto já lhe lhes mais mas me mesmo meu minha muito na nas nem
		no nos nossa nosso não nós o os ou para pela pelas pelo pelos por qual quando que quem se sem ser seu
		seus sua suas são só também te tem um uma você vocês à às é`},
	{"it", `a ad agli ai al alla alle anche che chi ci come con contro cui da dal dalla dei del della delle di
		dove e ed era essere gli ha hanno ho i il in io la le lei li lo loro lui ma mi mio ne negli nei nel nella
		noi non nostro o per perché più quale quando quella quello questa questo se sei si sia sono su sua sue
		sul sulla suo suoi ti tra tu tutti tutto un una uno vi voi è`},
	{"nl", `aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een en er
		ge geen geweest haar had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je kan kon
		kunnen maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op over
		reeds te tegen toch toen tot u uit uw van veel voor want waren was wat werd wie wij wil worden wordt zal
		ze zelf zich zij zijn zo zonder zou`},
	{"pl", `a aby ale bardzo bez bo by być był była było były ci co czy dla do gdy gdzie go i ich ile im inne ja
		jak jako je jego jej jest jeszcze już każdy kiedy kto która które który lub ma mi mnie może na nad nie
		nich niż o od on ona oni oraz po pod przed przez przy się są ta tak także tam te tego tej ten to tu ty
		tylko tym w we więc z za ze że`},
	{"sv", `alla allt att av blev bli blir där de dem den denna deras dess det detta dig din du då efter ej eller
		en er ett från för ha hade han hans har henne hon honom hur här i icke inom inte jag ju kan kunde man med
		mellan men mig min mot mycket ni nu när någon något och om oss på samma sedan sig sin sitt ska skulle
		som så till under upp ut utan vad var vara vi vid vilken är även över`},
	{"ru", `а без бы был была были было быть в вам вас весь во вот все всё вы где да даже для до его ее её если
		есть ещё же за и из или им их к как ко когда кто ли либо мне может мы на надо наш не него нет ни них но
		ну о об однако он она они оно от очень по под при с со так также такой там те тем то того тоже той
		только том ты у уже хотя чего чей чем что чтобы чьё эта эти это этот я`},
	{"tr", `ama ancak bana bazı ben beni bir biri biz bu bunu burada çok çünkü da daha de değil diye en gibi hem
		hep her için ile ise kadar ki kim mı mi mu mü nasıl ne neden o olan olarak oldu olduğu on ona onu sen
		siz şey şu tüm var ve veya ya yok`},
	{"id", `ada adalah agar akan anda apa atau bagi bahwa bisa dalam dan dapat dari dengan di dia harus hanya ia
		ini itu jika juga kami kamu karena ke kita lebih maka mereka namun oleh pada para pun saat saya sebagai
		sebuah secara seperti serta sudah tersebut tidak untuk yang`},
	{"vi", `bị bởi các cái cho chúng có của cũng đã đang đây đến để đó được hay hơn khi không là lại làm mà mỗi
		một này nên nếu người như những nhưng ra rằng rất sẽ tại thì theo trên trong từ và vẫn vào vì với`},
	{"ar", `أن أو إلى إن التي الذي الى ان او بعد بين تم ثم حتى حيث ذلك على عن عند غير في قال قبل قد كان كانت كل كما
		لا لم لن له لها ما مع من منذ منه هذا هذه هو هي وقد وكان ولا ومن يكون`},
	{"hi", `आप इस इसके एक और कर करता करते करना करने कहा का कि किया की कुछ के को कोई गया जा जो तक तो था थी थे दिया द्वारा
		ने पर भी मैं में यदि यह या ये वह वाले वे से हम ही हुआ है हैं हो होता`},
	{"zh", `的 了 是 在 和 也 就 都 而 及 与 與 着 或 之 把 被 让 给 从 到 为 以 于 吗 呢 吧 啊 这 那 個 个`},
	{"ja", `の は が を に へ と で も や か ら り て た だ し す る い う な ね よ れ さ`},
}
