package evidence_test

// handmade are facts with claims about them, written by hand before the code was run: what a reader
// would say. The last sheets, from the hospital on, were written after the code had been corrected
// for the others. The claims in holds are true, rounded, converted or calculated. Those in fails
// have a wrong number.
var handmade = []struct {
	name         string
	facts        []string
	holds, fails []string
	limits       []string // judged wrong today: true but flagged, or false but accepted
}{
	{
		"bridge",
		[]string{"The Harwell Bridge is 1,284 metres long, opened on 14 June 1932 and carries about 62,000 vehicles a day."},
		[]string{
			"The Harwell Bridge is nearly 1.3 km long.",
			"The bridge opened in mid-1932.",
			"Roughly sixty thousand vehicles cross the Harwell Bridge every day.",
			"The Harwell Bridge is some 4,213 feet long.",
		},
		[]string{
			"The Harwell Bridge is 1,824 metres long.",
			"The Harwell Bridge opened on 14 July 1932.",
			"About 26,000 vehicles cross the Harwell Bridge every day.",
			"The Harwell Bridge is 1,284 feet long.",
		},
		nil,
	},
	{
		"drug",
		[]string{
			"Adults take 500 mg of Lorvatin every 8 hours; the daily dose must not exceed 2 g.",
			"Children under 12 take 10 mg per kg of body weight once a day.",
		},
		[]string{
			"Adults take 0.5 g of Lorvatin three times a day.",
			"The maximum daily dose of Lorvatin is 2,000 mg.",
			"Children younger than twelve get 10 mg/kg once daily.",
			"An adult takes 500 milligrams every eight hours.",
		},
		[]string{
			"Adults take 500 mg of Lorvatin every 6 hours.",
			"The daily dose of Lorvatin must not exceed 4 g.",
			"Children under 12 take 15 mg per kg of body weight once a day.",
			"Adults take 50 mg of Lorvatin every 8 hours.",
		},
		nil,
	},
	{
		"company",
		[]string{
			"Tarvik Oy had net sales of EUR 48.2 million in 2021 and EUR 53.9 million in 2022.",
			"Its operating profit in 2022 was EUR 6.1 million. The company employed 312 people at the end of the year.",
		},
		[]string{
			"Tarvik's net sales grew by 11.8% in 2022.",
			"In 2022 Tarvik had net sales of almost €54m.",
			"Net sales rose by EUR 5.7 million from 2021 to 2022.",
			"Tarvik employed more than 300 people at the end of 2022.",
			"The operating margin in 2022 was about 11 percent.",
		},
		[]string{
			"Tarvik's net sales grew by 18.1% in 2022.",
			"In 2021 Tarvik had net sales of EUR 53.9 million.",
			"Tarvik's operating profit in 2022 was EUR 61 million.",
			"Tarvik employed 213 people at the end of 2022.",
			"Net sales rose by EUR 7.5 million from 2021 to 2022.",
		},
		nil,
	},
	{
		"planet",
		[]string{"Keldra orbits its star in 412 Earth days at a distance of 1.12 astronomical units. Its surface temperature is -31 °C and it has three moons: Ansa, Brel and Coro."},
		[]string{
			"A year on Keldra lasts 412 days.",
			"The surface of Keldra has a temperature of about -24 °F.",
			"Keldra has 3 moons.",
			"It is minus 31 degrees Celsius on the surface of Keldra.",
		},
		[]string{
			"A year on Keldra lasts 142 days.",
			"The surface of Keldra has a temperature of 31 °C.",
			"Keldra has four moons.",
			"Keldra orbits at a distance of 2.11 astronomical units.",
		},
		nil,
	},
	{
		"match",
		[]string{"Ravens beat Falcons 27-13 on 3 November 2019 before 71,412 spectators. Marlow scored two touchdowns and ran for 118 yards."},
		[]string{
			"The Ravens won 27-13.",
			"More than 71,000 people watched the game.",
			"Marlow ran for 118 yards and scored 2 touchdowns.",
			"The Ravens won by 14 points.",
			"The game took place on November 3rd, 2019.",
		},
		[]string{
			"The Ravens won 31-13.",
			"The game drew 17,412 spectators.",
			"Marlow ran for 181 yards.",
			"Marlow scored three touchdowns.",
			"The game took place on 13 November 2019.",
		},
		nil,
	},
	{
		"recipe",
		[]string{"Mix 350 g of flour with 240 ml of milk and 2 eggs. Bake for 45 minutes at 180 °C. Serves 6."},
		[]string{
			"You need 350 grams of flour.",
			"Bake the dough at 356 °F.",
			"It bakes for three quarters of an hour.",
			"The recipe uses two eggs.",
		},
		[]string{
			"You need 530 grams of flour.",
			"Bake it at 220 °C.",
			"Bake it for 54 minutes.",
			"The recipe uses 4 eggs.",
		},
		nil,
	},
	{
		"contract",
		[]string{
			"The notice period is 90 days. The licence fee is $1,250 per month, due on the 5th of each month.",
			"Late payments bear interest of 1.5 % per month. The term is three years from 1 April 2023.",
		},
		[]string{
			"Either party can end it with ninety days' notice.",
			"The licence fee comes to $15,000 per year.",
			"The fee of USD 1,250 is due on the fifth of every month.",
			"The contract runs for 36 months.",
		},
		[]string{
			"The notice period is 60 days.",
			"The licence fee is $1,520 per month.",
			"Late payments bear interest of 2.5 % per month.",
			"The term is five years from 1 April 2023.",
		},
		nil,
	},
	{
		"two rivers",
		[]string{"The Olt is 615 km long and drains 24,050 km².", "The Mures is 789 km long and drains 30,332 km²."},
		[]string{
			"The Mures is 174 km longer than the Olt.",
			"The Olt drains some 24,000 square kilometres.",
			"The Mures is about 490 miles long.",
			"Together the Olt and the Mures are 1,404 km long.",
		},
		[]string{
			"The Olt is 789 km long.",
			"The Mures drains 24,050 km².",
			"The Mures is 274 km longer than the Olt.",
			"The Olt is 615 miles long.",
		},
		nil,
	},
	{
		"phone",
		[]string{"The Nimbus 4 has a 6.1-inch display, 128 GB of storage, weighs 187 g and costs $699. Its battery holds 4,100 mAh and charges to 50 % in 30 minutes."},
		[]string{
			"The phone weighs 187 grams.",
			"It charges halfway in half an hour.",
			"For 699 dollars you get 128 gigabytes of storage.",
			"The display measures about 15.5 cm.",
		},
		[]string{
			"The Nimbus 4 has 256 GB of storage.",
			"The Nimbus 4 costs $799.",
			"The Nimbus 4 weighs 178 g.",
			"Its battery holds 4,800 mAh.",
		},
		nil,
	},
	{
		"biography",
		[]string{"Ada Brenner was born on 9 March 1868 in Trieste and died on 2 October 1941 at the age of 73. She published 14 novels, the first in 1895."},
		[]string{
			"Ada Brenner, born in 1868, wrote fourteen novels.",
			"Brenner was 27 when her first novel appeared in 1895.",
			"She lived to be 73.",
			"Brenner died in the early 1940s.",
		},
		[]string{
			"Ada Brenner was born on 9 May 1868.",
			"Ada Brenner published 41 novels.",
			"Brenner died on 2 October 1914.",
			"Ada Brenner died at the age of 78.",
		},
		nil,
	},
	{
		"election",
		[]string{"Turnout was 61.4 %. Lindqvist received 48.7 % of the votes, Okoye 39.2 % and Marsh 12.1 %. A total of 2,318,447 votes were cast."},
		[]string{
			"Just under half of the voters chose Lindqvist.",
			"Lindqvist was 9.5 percentage points ahead of Okoye.",
			"About 2.3 million votes were cast.",
			"Turnout was around 61 percent.",
		},
		[]string{
			"Okoye received 48.7 % of the votes.",
			"Turnout was 64.1 %.",
			"About 3.2 million votes were cast.",
			"Marsh received 21.1 % of the votes.",
		},
		nil,
	},
	{
		"server",
		[]string{"The Quill server handles 12,500 requests per second with a p99 latency of 38 ms on 16 cores. Memory use stays below 2.4 GB."},
		[]string{
			"Quill handles 12.5k requests per second.",
			"The 99th percentile latency is 38 milliseconds.",
			"Quill runs on sixteen cores.",
			"It needs less than 2.5 GB of memory.",
		},
		[]string{
			"Quill handles 21,500 requests per second.",
			"The p99 latency of Quill is 83 ms.",
			"The Quill server ran on 32 cores.",
			"Quill's p99 latency is 38 seconds.",
		},
		nil,
	},
	{
		"German city",
		[]string{"Die Stadt Velm hat 84.312 Einwohner (Stand: 31. Dezember 2022) und liegt 212 m über dem Meer. Die Fläche beträgt 63,4 km²."},
		[]string{
			"In Velm leben rund 84.000 Menschen.",
			"Velm hat eine Fläche von gut 63 Quadratkilometern.",
			"Ende 2022 hatte Velm 84.312 Einwohner.",
			"Velm liegt 212 Meter über dem Meeresspiegel.",
		},
		[]string{
			"Velm hat 48.312 Einwohner.",
			"Velm liegt 122 m über dem Meer.",
			"Die Fläche von Velm beträgt 36,4 km².",
			"Velm hat knapp 80.000 Einwohner.",
		},
		nil,
	},
	{
		"German contract",
		[]string{"Die Miete beträgt 1.150,50 Euro im Monat. Die Kündigungsfrist beträgt drei Monate. Die Kaution von 2.301 Euro ist bis zum 1. März 2024 zu zahlen."},
		[]string{
			"Die Monatsmiete liegt bei 1150,50 €.",
			"Die Kaution beträgt zwei Monatsmieten, also 2.301 Euro.",
			"Man kann mit einer Frist von 3 Monaten kündigen.",
			"Die Kaution ist am 01.03.2024 fällig.",
		},
		[]string{
			"Die Kündigungsfrist beträgt sechs Monate.",
			"Die Miete beträgt 1.510,50 Euro im Monat.",
			"Die Kaution ist bis zum 1. Mai 2024 zu zahlen.",
		},
		nil,
	},
	{
		"French tower",
		[]string{"La tour Belmont mesure 142 mètres de haut et compte 38 étages. Elle a été achevée le 7 septembre 1973 et a coûté 96 millions d'euros."},
		[]string{
			"La tour Belmont a trente-huit étages.",
			"Haute de 142 m, la tour Belmont date de 1973.",
			"La construction de la tour Belmont a coûté près de 100 millions d'euros.",
		},
		[]string{
			"La tour Belmont compte 83 étages.",
			"La tour Belmont mesure 214 mètres de haut.",
			"La tour Belmont a été achevée le 7 décembre 1973.",
		},
		nil,
	},
	{
		"French school",
		[]string{"L'école accueille 1 240 élèves, dont 52,5 % de filles. Les cours commencent à 8 h 30."},
		[]string{
			"L'école compte environ 1 200 élèves.",
			"Plus de la moitié des élèves sont des filles.",
			"Les cours débutent à 8h30.",
		},
		[]string{
			"L'école accueille 1 420 élèves.",
			"Les filles représentent 25,5 % des élèves de l'école.",
			"Les cours commencent à 9 h 30.",
			"Près de 2 000 élèves vont à l'école.",
		},
		nil,
	},
	{
		"Spanish company",
		[]string{"La empresa Altamar facturó 12,4 millones de euros en 2020 y 15,5 millones de euros en 2021. Tiene 86 empleados y fue fundada el 3 de mayo de 1994."},
		[]string{
			"Altamar facturó 15,5 M€ en 2021.",
			"La facturación de Altamar creció un 25 % en 2021.",
			"Altamar, fundada en 1994, tiene casi noventa empleados.",
			"Altamar tiene más de 80 empleados.",
			"Entre 2020 y 2021 la facturación subió en 3,1 millones de euros.",
		},
		[]string{
			"Altamar facturó 15,5 millones de euros en 2020.",
			"Altamar tiene 68 empleados.",
			"Altamar fue fundada el 3 de marzo de 1994.",
			"La facturación de Altamar creció un 45 % en 2021.",
		},
		nil,
	},
	{
		"Chinese city",
		[]string{"云州市面积为3,280平方公里，2021年人口为156万人，国内生产总值为820亿元。"},
		[]string{
			"云州市人口约为156万。",
			"云州市的面积是3280平方公里。",
			"2021年云州市国内生产总值达820亿元。",
			"云州市有一百五十六万人口。",
			"云州市有150多万人口。",
		},
		[]string{
			"云州市人口为165万人。",
			"云州市的面积是2380平方公里。",
			"2021年云州市国内生产总值为280亿元。",
		},
		nil,
	},
	{
		"Chinese train",
		[]string{"G7次列车上午9点从北京出发，13点28分到达上海，全程1318公里，票价553元。"},
		[]string{
			"G7次列车全程1318公里。",
			"票价为553元。",
		},
		[]string{
			"G7次列车全程1813公里。",
			"票价为533元。",
			"G7次列车上午8点从北京出发。",
		},
		nil,
	},
	{
		"hospital",
		[]string{"St. Orla has 640 beds and 2,150 staff. In 2020 it treated 31,400 inpatients, 8 % fewer than in 2019. An average stay lasts 5.2 days."},
		[]string{
			"The hospital employs over 2,100 people.",
			"Patients stay just over five days on average.",
			"St. Orla treated 31.4 thousand inpatients in 2020.",
		},
		[]string{
			"St. Orla has 460 beds.",
			"In 2020 the number of inpatients fell by 18 %.",
			"An average stay lasts 2.5 days.",
		},
		nil,
	},
	{
		"vitamins",
		[]string{"Vitamin A: 900 µg per day for men, 700 µg for women. Vitamin C: 90 mg for men, 75 mg for women."},
		[]string{
			"Men need 900 micrograms of vitamin A a day.",
			"Women should get 75 mg of vitamin C.",
		},
		[]string{
			"Men need 90 mg of vitamin A.",
			"Men should get 57 mg of vitamin C.",
		},
		// The words of the clause outweigh those of the sentence by less than the margin of a swap.
		[]string{"Women need 900 µg of vitamin A per day."},
	},
	{
		"battle",
		[]string{"The siege began on 12 March 1644 and ended 73 days later. Of the 3,000 defenders, 1,120 survived."},
		[]string{
			"The siege lasted 73 days.",
			"About 1,900 defenders died.",
			"More than 1,000 of the defenders survived.",
			"The siege of 1644 began in March.",
		},
		[]string{
			"The siege lasted 37 days.",
			"Of the defenders 2,120 survived.",
			"The siege began in 1664.",
		},
		nil,
	},
	{
		"flat",
		[]string{"The flat has 3 rooms and 78 m², costs 1,290 euros a month including 210 euros for heating, and is free from 1 August 2025."},
		[]string{
			"The three-room flat is about 840 square feet in size.",
			"Without heating it costs 1,080 euros a month, a difference of 210 euros.",
			"You can move in on 01/08/2025.",
		},
		[]string{
			"The flat has 5 rooms.",
			"Heating costs 120 euros a month.",
			"It is free from 1 September 2025.",
		},
		nil,
	},
	{
		"German train",
		[]string{"Der Zug fährt um 7:42 Uhr in Bregen ab und erreicht nach 2 Stunden und 15 Minuten Salm. Eine Fahrkarte kostet 39,90 Euro, für Kinder die Hälfte."},
		[]string{
			"Die Fahrt dauert zweieinviertel Stunden, also 135 Minuten.",
			"Eine Fahrkarte kostet knapp 40 Euro.",
			"Abfahrt in Bregen ist um 7.42 Uhr.",
		},
		[]string{
			"Die Fahrt dauert 3 Stunden und 15 Minuten.",
			"Eine Fahrkarte kostet 93,90 Euro.",
			"Der Zug fährt um 8:42 Uhr in Bregen ab.",
		},
		nil,
	},
	{
		"French survey",
		[]string{"Sur 1 500 personnes interrogées, 930 sont favorables au projet, soit 62 %. L'enquête a duré du 3 au 17 avril 2023."},
		[]string{
			"62 pour cent des personnes interrogées soutiennent le projet.",
			"L'enquête porte sur mille cinq cents personnes.",
		},
		[]string{
			"26 % des personnes interrogées sont favorables au projet.",
			"L'enquête porte sur 5 100 personnes.",
			"L'enquête a eu lieu en avril 2022.",
		},
		nil,
	},
	{
		"Spanish park",
		[]string{"El parque tiene 54.252 hectáreas y recibió 1.250.000 visitantes en 2019, el doble que en 2009. Se creó en 1969."},
		[]string{
			"El parque recibió 1,25 millones de visitantes en 2019.",
			"El parque ocupa unas 54.000 hectáreas.",
		},
		[]string{
			"El parque recibió 2,15 millones de visitantes en 2019.",
			"El parque se creó en 1996.",
		},
		// By stems, "creado" is another word than "creó", and the previous sentence has a date and
		// the park.
		[]string{"El parque fue creado en los años sesenta."},
	},
	{
		"Chinese firm",
		[]string{"华岚公司成立于1998年5月，现有员工4200名，去年销售额增长了12.5%，达到36亿元。"},
		[]string{
			"华岚公司有四千二百名员工。",
			"去年销售额增长百分之十二点五。",
			"公司成立于1998年。",
		},
		[]string{
			"华岚公司有2400名员工。",
			"去年销售额增长了21.5%。",
			"公司成立于1989年5月。",
		},
		nil,
	},
}
