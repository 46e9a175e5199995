package pii

import (
	"strings"
	"unicode/utf8"
)

// entry tells what a word or a name of several words is; it may be several things.
type entry uint8

const (
	entryPlace  entry = 1 << iota
	entryState        // of the United States
	entryGroup        // nationality, religious or political group
	entryTitle        // before a person's name
	entryLegal        // legal form behind a company's name
	entryPrefix       // the first words of a longer entry
)

// maxEntryWords is the most words that an entry has.
const maxEntryWords = 4

// lexicon holds names by their spelling.
type lexicon struct {
	words map[string]entry
	// first holds a bit for each pair of first letters and length (up to 31) of a word in words, so
	// that most words of a text need no hashing.
	first [26][26]uint32
}

// mayHave reports whether words could hold w, which begins with a capital.
func (l *lexicon) mayHave(w string) bool {
	if len(w) < 2 {
		return false
	}
	b := w[1] | 0x20
	if b-'a' > 'z'-'a' || w[1] >= utf8.RuneSelf {
		return w[1] >= utf8.RuneSelf
	}
	return l.first[w[0]-'A'][b-'a']>>min(len(w), 31)&1 != 0
}

var gazetteer = newLexicon() //nolint:gochecknoglobals // constant table

func newLexicon() *lexicon {
	l := &lexicon{words: make(map[string]entry, 2048)}
	for _, list := range []struct {
		names string
		kind  entry
	}{
		{countries, entryPlace},
		{cities, entryPlace},
		{states, entryPlace | entryState},
		{nationalities, entryGroup},
		{creeds, entryGroup},
		{titles, entryTitle},
		{legalForms, entryLegal},
	} {
		for name := range strings.SplitSeq(list.names, ",") {
			l.add(strings.TrimSpace(name), list.kind)
		}
	}
	return l
}

func (l *lexicon) add(name string, kind entry) {
	l.words[name] |= kind
	first := name
	for k := range len(name) {
		if name[k] == ' ' || name[k] == '-' {
			l.words[name[:k]] |= entryPrefix
			first = first[:min(len(first), k)]
		}
	}
	if len(first) >= 2 && isUpper(first[0]) && isLetter(first[1]) {
		l.first[first[0]-'A'][first[1]|0x20-'a'] |= 1 << min(len(first), 31)
	}
}

// The names of this file are common knowledge, written down for it: the members and observers of
// the United Nations and other territories by their usual English names, their people, the states
// of the United States, capitals, and the cities that most is written about.
const (
	countries = "Afghanistan, Albania, Algeria, Andorra, Angola, Antigua and Barbuda, Argentina, Armenia, Australia, Austria, Azerbaijan, Bahamas, Bahrain, Bangladesh, Barbados, " +
		"Belarus, Belgium, Belize, Benin, Bhutan, Bolivia, Bosnia, Bosnia and Herzegovina, Botswana, Brazil, Britain, Brunei, Bulgaria, Burkina Faso, Burundi, Cambodia, Cameroon, Canada, " +
		"Cape Verde, Central African Republic, Chad, Chile, China, Colombia, Comoros, Congo, Costa Rica, Croatia, Cuba, Cyprus, Czech Republic, Czechia, Denmark, Djibouti, Dominica, " +
		"Dominican Republic, East Timor, Timor-Leste, Ecuador, Egypt, El Salvador, Equatorial Guinea, Eritrea, Estonia, Eswatini, Swaziland, Ethiopia, Fiji, Finland, France, Gabon, Gambia, Georgia, Germany, " +
		"Ghana, Greece, Grenada, Guatemala, Guinea, Guinea-Bissau, Guyana, Haiti, Honduras, Hungary, Iceland, India, Indonesia, Iran, Iraq, Ireland, Israel, Italy, Ivory Coast, Jamaica, Japan, " +
		"Jordan, Kazakhstan, Kenya, Korea, Kiribati, Kosovo, Kuwait, Kyrgyzstan, Laos, Latvia, Lebanon, Lesotho, Liberia, Libya, Liechtenstein, Lithuania, Luxembourg, Madagascar, Malawi, Malaysia, " +
		"Macedonia, Maldives, Mali, Malta, Marshall Islands, Mauritania, Mauritius, Mexico, Micronesia, Moldova, Monaco, Mongolia, Montenegro, Morocco, Mozambique, Myanmar, Burma, Namibia, Nauru, Nepal, " +
		"Netherlands, New Zealand, Nicaragua, Niger, Nigeria, North Korea, North Macedonia, Norway, Oman, Pakistan, Palau, Palestine, Panama, Papua New Guinea, Paraguay, Peru, Philippines, " +
		"Poland, Portugal, Qatar, Romania, Russia, Rwanda, Saint Kitts and Nevis, Saint Lucia, Samoa, San Marino, Sao Tome and Principe, Saudi Arabia, Senegal, Serbia, Seychelles, Sierra Leone, Singapore, Slovakia, " +
		"Slovenia, Solomon Islands, Somalia, South Africa, South Korea, South Sudan, Spain, Sri Lanka, Sudan, Suriname, Sweden, Switzerland, Syria, Taiwan, Tajikistan, Tanzania, Thailand, Togo, " +
		"Tonga, Trinidad and Tobago, Tunisia, Turkey, Turkmenistan, Tuvalu, Uganda, Ukraine, United Arab Emirates, United Kingdom, England, Scotland, Wales, Northern Ireland, Great Britain, " +
		"United States, United States of America, Uruguay, Uzbekistan, Vanuatu, Vatican City, Venezuela, Vietnam, Yemen, Zambia, Zimbabwe, Greenland, Puerto Rico, Guam, Bermuda, Aruba, Gibraltar, " +
		"Hong Kong, Macau, Cook Islands, Cayman Islands, Virgin Islands, Faroe Islands, Falkland Islands, French Polynesia, New Caledonia, Martinique, Guadeloupe, Anguilla, Montserrat, Niue, Tokelau, " +
		"Svalbard, Isle of Man, Jersey, Guernsey, Western Sahara, American Samoa, Norfolk Island, Pitcairn Islands, Saint Helena, Mayotte, Christmas Island, USA, U.S., UK, UAE"

	states = "Alabama, Alaska, Arizona, Arkansas, California, Colorado, Connecticut, Delaware, Florida, Georgia, Hawaii, Idaho, Illinois, Indiana, Iowa, Kansas, Kentucky, Louisiana, Maine, Maryland, " +
		"Massachusetts, Michigan, Minnesota, Mississippi, Missouri, Montana, Nebraska, Nevada, New Hampshire, New Jersey, New Mexico, New York, North Carolina, North Dakota, Ohio, Oklahoma, Oregon, " +
		"Pennsylvania, Rhode Island, South Carolina, South Dakota, Tennessee, Texas, Utah, Vermont, Virginia, Washington, West Virginia, Wisconsin, Wyoming"

	cities = "London, Paris, Berlin, Madrid, Rome, Lisbon, Vienna, Brussels, Amsterdam, Copenhagen, Stockholm, Oslo, Helsinki, Dublin, Warsaw, Prague, Budapest, Bucharest, Sofia, Athens, Belgrade, Zagreb, " +
		"Ljubljana, Bratislava, Vilnius, Riga, Tallinn, Minsk, Kyiv, Kiev, Moscow, Chisinau, Tirana, Skopje, Sarajevo, Podgorica, Pristina, Valletta, Nicosia, Reykjavik, Bern, Vaduz, Luxembourg City, " +
		"Ankara, Istanbul, Izmir, Tbilisi, Yerevan, Baku, Tehran, Baghdad, Damascus, Beirut, Amman, Jerusalem, Tel Aviv, Riyadh, Jeddah, Mecca, Medina, Doha, Abu Dhabi, Dubai, Muscat, Sanaa, Kuwait City, Manama, " +
		"Kabul, Islamabad, Karachi, Lahore, Rawalpindi, Faisalabad, Peshawar, New Delhi, Mumbai, Bombay, Kolkata, Calcutta, Chennai, Madras, Bangalore, Bengaluru, Hyderabad, Ahmedabad, Pune, Jaipur, Lucknow, Kanpur, " +
		"Nagpur, Indore, Bhopal, Patna, Surat, Vadodara, Coimbatore, Kochi, Visakhapatnam, Agra, Varanasi, Amritsar, Chandigarh, Delhi, Guwahati, Dhaka, Chittagong, Kathmandu, Thimphu, Colombo, Male, Yangon, Naypyidaw, " +
		"Bangkok, Chiang Mai, Hanoi, Ho Chi Minh City, Saigon, Da Nang, Phnom Penh, Vientiane, Kuala Lumpur, Jakarta, Surabaya, Bandung, Medan, Bali, Manila, Quezon City, Cebu, Davao, Bandar Seri Begawan, " +
		"Beijing, Shanghai, Guangzhou, Shenzhen, Chengdu, Chongqing, Tianjin, Wuhan, Nanjing, Hangzhou, Suzhou, Harbin, Shenyang, Dalian, Qingdao, Jinan, Zhengzhou, Changsha, Kunming, Lhasa, Urumqi, Taipei, Kaohsiung, Taichung, " +
		"Ulaanbaatar, Seoul, Busan, Incheon, Daegu, Pyongyang, Tokyo, Osaka, Kyoto, Yokohama, Nagoya, Sapporo, Kobe, Fukuoka, Hiroshima, Sendai, Nagasaki, Tashkent, Samarkand, Almaty, Astana, Bishkek, Dushanbe, Ashgabat, " +
		"Cairo, Alexandria, Giza, Khartoum, Tripoli, Tunis, Algiers, Oran, Rabat, Casablanca, Marrakesh, Fez, Tangier, Dakar, Bamako, Nouakchott, Conakry, Freetown, Monrovia, Abidjan, Accra, Kumasi, Lome, Cotonou, Lagos, Abuja, " +
		"Kano, Ibadan, Port Harcourt, Niamey, Ouagadougou, Yaounde, Douala, Libreville, Kinshasa, Brazzaville, Luanda, Kampala, Kigali, Nairobi, Mombasa, Dar es Salaam, Dodoma, Addis Ababa, Asmara, Djibouti City, " +
		"Mogadishu, Antananarivo, Maputo, Harare, Bulawayo, Lusaka, Lilongwe, Gaborone, Windhoek, Pretoria, Johannesburg, Cape Town, Durban, Soweto, Maseru, Port Louis, Victoria, " +
		"Washington DC, New York City, Los Angeles, Chicago, Houston, Phoenix, Philadelphia, San Antonio, San Diego, Dallas, San Jose, Austin, Jacksonville, Fort Worth, Columbus, Charlotte, San Francisco, Indianapolis, " +
		"Seattle, Denver, Boston, El Paso, Detroit, Nashville, Portland, Memphis, Oklahoma City, Las Vegas, Louisville, Baltimore, Milwaukee, Albuquerque, Tucson, Fresno, Sacramento, Kansas City, Mesa, Atlanta, Omaha, " +
		"Colorado Springs, Raleigh, Miami, Long Beach, Virginia Beach, Oakland, Minneapolis, Tulsa, Tampa, Arlington, New Orleans, Wichita, Cleveland, Bakersfield, Honolulu, Anaheim, Cincinnati, Pittsburgh, St. Louis, " +
		"Orlando, Anchorage, Buffalo, Salt Lake City, Boise, Richmond, Des Moines, Little Rock, Brooklyn, Manhattan, Queens, Bronx, Toronto, Montreal, Vancouver, Calgary, Ottawa, Edmonton, Winnipeg, Quebec City, Halifax, " +
		"Mexico City, Guadalajara, Monterrey, Tijuana, Cancun, Puebla, Guatemala City, San Salvador, Tegucigalpa, Managua, Panama City, Havana, Kingston, Port-au-Prince, Santo Domingo, San Juan, Nassau, Bridgetown, " +
		"Bogota, Medellin, Cali, Caracas, Maracaibo, Quito, Guayaquil, Lima, Cusco, La Paz, Sucre, Santa Cruz, Santiago, Valparaiso, Buenos Aires, Cordoba, Rosario, Mendoza, Montevideo, Asuncion, Brasilia, Sao Paulo, São Paulo, " +
		"Rio de Janeiro, Salvador, Fortaleza, Belo Horizonte, Recife, Curitiba, Porto Alegre, Manaus, Georgetown, Paramaribo, Sydney, Melbourne, Brisbane, Perth, Adelaide, Canberra, Hobart, Darwin, Gold Coast, " +
		"Auckland, Wellington, Christchurch, Suva, Port Moresby, Manchester, Birmingham, Liverpool, Leeds, Glasgow, Edinburgh, Cardiff, Belfast, Bristol, Sheffield, Newcastle, Nottingham, Leicester, Oxford, Cambridge, " +
		"Brighton, Southampton, Cork, Galway, Munich, München, Hamburg, Cologne, Köln, Frankfurt, Stuttgart, Düsseldorf, Dortmund, Leipzig, Dresden, Hanover, Nuremberg, Bremen, Bonn, Salzburg, Graz, Innsbruck, Linz, Zurich, Zürich, Geneva, Basel, " +
		"Lausanne, Marseille, Lyon, Toulouse, Nice, Nantes, Strasbourg, Montpellier, Bordeaux, Lille, Barcelona, Valencia, Seville, Sevilla, Zaragoza, Malaga, Bilbao, Granada, Porto, Braga, Coimbra, Milan, Milano, Naples, Napoli, Turin, Torino, " +
		"Florence, Firenze, Venice, Venezia, Bologna, Genoa, Palermo, Verona, Bari, Rotterdam, The Hague, Utrecht, Eindhoven, Groningen, Antwerp, Ghent, Bruges, Gothenburg, Göteborg, Malmö, Uppsala, Bergen, Trondheim, Aarhus, Odense, Tampere, Turku, " +
		"Krakow, Kraków, Lodz, Wroclaw, Wrocław, Poznan, Poznań, Gdansk, Gdańsk, Lublin, Brno, Ostrava, Debrecen, Cluj-Napoca, Varna, Plovdiv, Thessaloniki, Split, Odessa, Kharkiv, Lviv, Dnipro, St Petersburg, Saint Petersburg, Novosibirsk, " +
		"Yekaterinburg, Kazan, Samara, Vladivostok, Sochi"

	nationalities = "Afghan, Albanian, Algerian, American, Angolan, Argentine, Argentinian, Armenian, Australian, Austrian, Azerbaijani, Bahraini, Bangladeshi, Belarusian, Belgian, Bolivian, Bosnian, Brazilian, British, " +
		"Bulgarian, Burmese, Cambodian, Cameroonian, Canadian, Chilean, Chinese, Colombian, Congolese, Costa Rican, Croatian, Cuban, Cypriot, Czech, Danish, Dominican, Dutch, Ecuadorian, Egyptian, Emirati, English, Eritrean, " +
		"Estonian, Ethiopian, Filipino, Filipina, Finnish, French, Gambian, Georgian, German, Ghanaian, Greek, Guatemalan, Haitian, Honduran, Hungarian, Icelandic, Indian, Indonesian, Iranian, Iraqi, Irish, Israeli, Italian, Ivorian, " +
		"Jamaican, Japanese, Jordanian, Kazakh, Kenyan, Korean, Kosovan, Kurdish, Kuwaiti, Kyrgyz, Laotian, Latvian, Lebanese, Liberian, Libyan, Lithuanian, Macedonian, Malagasy, Malaysian, Malian, Maltese, Mexican, Moldovan, Mongolian, " +
		"Montenegrin, Moroccan, Mozambican, Namibian, Nepalese, Nepali, Nicaraguan, Nigerian, Norwegian, Omani, Pakistani, Palestinian, Panamanian, Paraguayan, Peruvian, Polish, Portuguese, Puerto Rican, Qatari, Romanian, Russian, Rwandan, " +
		"Salvadoran, Saudi, Scottish, Senegalese, Serbian, Singaporean, Slovak, Slovenian, Somali, South African, South Korean, North Korean, Spanish, Sri Lankan, Sudanese, Swedish, Swiss, Syrian, Taiwanese, Tajik, Tanzanian, Thai, Tunisian, Turkish, " +
		"Turkmen, Ugandan, Ukrainian, Uruguayan, Uzbek, Venezuelan, Vietnamese, Welsh, Yemeni, Zambian, Zimbabwean"

	creeds = "Christian, Catholic, Roman Catholic, Protestant, Lutheran, Methodist, Baptist, Anglican, Evangelical, Presbyterian, Mormon, Orthodox, Jewish, Jew, Muslim, Sunni, Shia, Shiite, Sufi, Hindu, Buddhist, Sikh, Jain, " +
		"Zoroastrian, Taoist, Shinto, Atheist, Agnostic, Quaker, Amish, Republican, Democrat, Libertarian, Socialist, Communist, Conservative, Labour, Marxist"

	titles = "Mr, Mrs, Ms, Miss, Mx, Dr, Prof, Professor, Doctor, Sir, Madam, Madame, Dame, Herr, Frau, Monsieur, Mme, Mlle, Señor, Señora, Señorita, Senhor, Senhora, Signor, Signora, Signorina, Meneer, Mevrouw, Fru, Pan, Pani, Sayın, Don, Doña, Dona"

	legalForms = "Inc, Incorporated, LLC, Ltd, Limited, PLC, Plc, LLP, Corp, Corporation, GmbH, AG, KG, OHG, KGaA, UG, SARL, SAS, SA, SpA, Srl, SRL, BV, NV, AB, HB, Oy, AS, ASA, Holding, Holdings"
)

// stateCodes are the two letters that the US Postal Service gives to states and the federal
// district (USPS Publication 28, appendix B).
var stateCodes = func() map[string]bool { //nolint:gochecknoglobals // constant table
	m := make(map[string]bool)
	for c := range strings.FieldsSeq("AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY PR") {
		m[c] = true
	}
	return m
}()
