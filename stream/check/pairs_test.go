package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// TestFactsThatPeopleTry checks typical facts, each with a true and a false claim: products,
// opening hours, prices, tables, tool results, contracts, release notes and minutes. The numbers
// decide on the false one, whatever the model says.
func TestFactsThatPeopleTry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fact       string
		right      string
		want       check.Verdict
		wrong      string
		wantOfThat check.Verdict
	}{
		{
			"The Kestrel 3 has a 5,000 mAh battery and weighs 189 g.",
			"The Kestrel 3 weighs 189 grams.", check.Supported,
			"The Kestrel 3 weighs 198 grams.", check.Contradicted,
		},
		{
			"The water bottle holds 750 ml and is dishwasher safe.",
			"The bottle holds 0.75 litres.", check.Supported,
			"The bottle holds 0.5 litres.", check.Contradicted,
		},
		{
			"The monitor has two HDMI ports and one USB-C port with 90 W charging.",
			"The USB-C port charges with 90 watts.", check.Supported,
			"The USB-C port charges with 65 watts.", check.Contradicted,
		},
		{
			"Screen size: 14 inch; resolution 2880 x 1800; brightness 500 nits; weight 1.24 kg.",
			"The screen has a brightness of 500 nits.", check.Supported,
			"The laptop weighs 1.42 kg.", check.Unsupported,
		},
		{
			"Orders over 50 euros ship for free; below that, shipping is 4.90 euros.",
			"Orders over 50 euros ship for free.", check.Supported,
			"Orders over 40 euros ship for free.", check.Contradicted,
		},
		{
			"Opening hours: Monday to Friday 9:00-18:00, Saturday 10:00-14:00, closed on Sunday.",
			"On Saturday the shop closes at 14:00.", check.Supported,
			"On Saturday the shop closes at 16:00.", check.Contradicted,
		},
		{
			"The pool is open daily from 7 am to 9 pm.",
			"The pool closes at 9 pm every day.", check.Unchecked,
			"The pool closes at 10 pm every day.", check.Contradicted,
		},
		{
			"The museum is open from 10 am to 6 pm. The café is open from 8 am to 4 pm.",
			"The café is open from 8 am to 4 pm.", check.Supported,
			"The museum is open from 8 am to 4 pm.", check.Contradicted,
		},
		{
			"Support is available Monday through Friday, 08:00 to 20:00 CET.",
			"Support starts at 7:00 UTC on weekdays.", check.Supported,
			"Support starts at 8:00 UTC on weekdays.", check.Contradicted,
		},
		{
			"The Pro plan costs $20 per user per month, billed annually.",
			"Pro is $20 a month for each user.", check.Unchecked,
			"Pro is $25 a month for each user.", check.Contradicted,
		},
		{
			"Workshop tickets are 45 euros per person; groups of ten or more pay 40 euros each.",
			"A workshop ticket costs 45 euros.", check.Supported,
			"A workshop ticket costs 54 euros.", check.Contradicted,
		},
		{
			"A double room is 120 euros per night, breakfast 15 euros per guest.",
			"Breakfast costs 15 euros per person.", check.Supported,
			"Breakfast costs 18 euros per person.", check.Contradicted,
		},
		{
			"The old price was 30 euros; it is now 20 euros.",
			"The price is 20 euros.", check.Supported,
			"The price is 30 euros.", check.Contradicted,
		},
		{
			"The subscription is 9.99 euros a month or 99 euros a year.",
			"The yearly subscription costs 99 euros.", check.Supported,
			"The yearly subscription costs 9.99 euros.", check.Contradicted,
		},
		{
			"| Plan | Users | Storage |\n|---|---|---|\n| Free | 1 | 5 GB |\n| Team | 10 | 100 GB |\n| Business | 50 | 1 TB |",
			"The Team plan includes 100 GB of storage.", check.Supported,
			"The Team plan includes 1 TB of storage.", check.Contradicted,
		},
		{
			"| Region | Revenue (EUR million) | Employees |\n|---|---|---|\n| North | 12.4 | 310 |\n| South | 8.1 | 190 |",
			"The North region made 12.4 million euros in revenue.", check.Supported,
			"The South region made 12.4 million euros in revenue.", check.Contradicted,
		},
		{
			"| Stop | Arrives | Departs |\n|---|---|---|\n| Mill Lane | 08:12 | 08:14 |\n| Harbour | 08:31 | 08:36 |",
			"The bus departs from Harbour at 08:36.", check.Unchecked,
			"The bus departs from Harbour at 08:14.", check.Contradicted,
		},
		{
			"| Size | Chest (cm) | Price |\n|---|---|---|\n| S | 92 | $19 |\n| M | 98 | $19 |\n| XL | 112 | $22 |",
			"Size XL costs $22.", check.Supported,
			"Size XL costs $19.", check.Contradicted,
		},
		{
			`{"order_id":"A-1042","status":"shipped","items":3,"total":84.5,"currency":"EUR","eta":"2026-12-02"}`,
			"Order A-1042 has 3 items.", check.Supported,
			"Order A-1042 has 5 items.", check.Contradicted,
		},
		{
			`{"city":"Tromsø","temp_c":-4.5,"wind_kmh":22,"humidity":81,"snow":true}`,
			"In Tromsø it is -4.5 °C.", check.Supported,
			"In Tromsø it is 4.5 °C.", check.Contradicted,
		},
		{
			`{"flight":"LX 318","gate":"B42","departs":"2026-12-01T18:25:00Z","delayed":false}`,
			"Flight LX 318 departs on December 1, 2026 at 18:25 UTC.", check.Supported,
			"Flight LX 318 departs on December 1, 2026 at 19:25 UTC.", check.Contradicted,
		},
		{
			`{"job":"nightly-backup","started":"2026-11-26T23:30:00Z","duration_s":540,"exit_code":0}`,
			"The nightly backup took 9 minutes.", check.Supported,
			"The nightly backup took 19 minutes.", check.Contradicted,
		},
		{
			"The agreement begins on 1 March 2026 and runs for 24 months.",
			"The agreement runs for two years.", check.Supported,
			"The agreement runs for three years.", check.Contradicted,
		},
		{
			"Either party may terminate with 90 days' written notice.",
			"The notice period is 90 days.", check.Unchecked,
			"The notice period is 60 days.", check.Unsupported,
		},
		{
			"Late payments bear interest at 1.5% per month.",
			"Late payments bear interest of 1.5% a month.", check.Supported,
			"Late payments bear interest of 1.5% a year.", check.Contradicted,
		},
		{
			"The liability of the supplier is limited to EUR 250,000 per calendar year.",
			"The supplier's liability is limited to 250,000 euros per year.", check.Supported,
			"The supplier's liability is limited to 500,000 euros per year.", check.Contradicted,
		},
		{
			"The deposit equals two monthly rents of 950 euros and is returned within six months.",
			"The monthly rent is 950 euros.", check.Supported,
			"The deposit is returned within three months.", check.Contradicted,
		},
		{
			"## 5.2.0\n- The default timeout was raised from 10 s to 30 s.\n- Batch size is limited to 512.",
			"The default timeout is 30 seconds.", check.Supported,
			"The default timeout is 10 seconds.", check.Contradicted,
		},
		{
			"The cache now holds 10,000 entries by default instead of 1,000.",
			"By default the cache holds 10,000 entries.", check.Supported,
			"By default the cache holds 1,000 entries.", check.Contradicted,
		},
		{
			"Startup is 40% faster: 1.2 s instead of 2 s on the reference machine.",
			"Startup takes 1.2 seconds on the reference machine.", check.Supported,
			"Startup takes 2 seconds on the reference machine.", check.Contradicted,
		},
		{
			"Attendees: Mara, Tom, Li. The launch was moved from 12 May to 26 May. Tom owns the press kit.",
			"The launch is on 26 May.", check.Supported,
			"The launch is on 12 May.", check.Contradicted,
		},
		{
			"The call is at 23:30 UTC on 3 December, which is 00:30 CET on 4 December.",
			"The call starts at 00:30 CET on 4 December.", check.Supported,
			"The call starts at 22:30 CET on 3 December.", check.Contradicted,
		},
	} {
		wantVerdict(t, entails, c.fact, c.right, c.want)
		wantVerdict(t, entails, c.fact, c.wrong, c.wantOfThat)
	}
}
