package pii

import "strings"

// hanFamily returns the length of the family name that a Chinese or Japanese name begins with, or 0.
func hanFamily(name string) int {
	for _, n := range [...]int{3, 2, 1} {
		if end := n * len("王"); end < len(name) {
			if _, ok := hanFamilies[name[:end]]; ok {
				return end
			}
		}
	}
	return 0
}

// koreanName reports whether a value is a family name and a name of one to three syllables.
func koreanName(value string) bool {
	const syllable = len("김")
	if len(value) < 2*syllable || len(value) > 4*syllable {
		return false
	}
	return strings.Contains(koreanFamilies, value[:syllable]) ||
		len(value) > 2*syllable && strings.Contains(longFamilies, value[:2*syllable])
}

// hanFamilies are the commonest family names of China and Japan.
//
//nolint:gochecknoglobals // constant table
var hanFamilies = func() map[string]struct{} {
	m := map[string]struct{}{}
	for _, r := range "王李张張刘劉陈陳杨楊赵趙黄黃周吴吳徐孙孫胡朱高林何郭马馬罗羅梁宋郑鄭谢謝韩韓唐冯馮于董萧蕭程曹袁邓鄧" +
		"许許傅沈曾彭吕呂苏蘇卢盧蒋蔣蔡贾賈丁魏薛叶葉阎閻余潘杜戴夏钟鍾汪田任姜范方石姚谭譚廖邹鄒熊金陆陸郝孔白崔康毛邱秦江史顾顧侯邵" +
		"孟龙龍万萬段雷钱錢汤湯尹黎易常武乔喬贺賀赖賴龚龔庞樊殷施陶翟倪严嚴牛温芦俞葛毕畢洪" {
		m[string(r)] = struct{}{}
	}
	for w := range strings.FieldsSeq(`欧阳 歐陽 司马 上官 诸葛 夏侯 皇甫 尉迟 公孙 慕容 长孙 宇文 司徒 佐藤 鈴木 高橋 田中 伊藤 渡辺 渡邊 山本
		中村 小林 加藤 吉田 山田 佐々木 山口 松本 井上 木村 斎藤 斉藤 清水 山崎 池田 橋本 阿部 石川 山下 中島 石井 小川 前田 岡田 長谷川 藤田 後藤
		近藤 村上 遠藤 青木 坂本 福田 太田 西村 藤井 金子 岡本 藤原 中野 三浦 原田 中川 松田 竹内 小野 田村 中山 和田 石田 森田 上田 内田 柴田 酒井
		宮崎 横山 高木 安藤 宮本 大野 小島 谷口 工藤 今井 高田 増田 丸山 杉山 村田 大塚 新井 小山 平野 藤本 河野 上野 野口 武田 松井 千葉 菅原 岩崎
		木下 久保 佐野 野村 松尾 菊地 市川 杉本 古川 大西 島田 水野 桜井 吉川 山内 西田 西川 菊池 北村 五十嵐 安田 中田 川口 平田 川崎 飯田 本田 沢田
		久保田 吉村 東 岩田 中西 服部 樋口 福島 川上 永井 松岡 田口 山中 森本 矢野 秋山 大島 小松 浜田 広瀬 松下 星野 望月 永田 尾崎 石原 吉岡 黒田 森 原 谷 堀 関
		岡 南 辻 星`) {
		m[w] = struct{}{}
	}
	return m
}()

// Family names of Korea, of one syllable and of two.
const (
	koreanFamilies = "김이박최정강조윤장임한오서신권황안송류전홍고문양손배백허유남심노하곽성차주우구민나진지엄채원천방공현함변염여추도소석선설마길연위표명기반왕금옥육인맹제모탁국어은편용"
	longFamilies   = "남궁 황보 제갈 선우 독고"
)
