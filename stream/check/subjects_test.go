package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// TestWhatIsSaidOfAnotherIsNotSupported checks claims that combine a subject with what is said of
// another. A small judge finds a claim entailed if its words are there.
func TestWhatIsSaidOfAnotherIsNotSupported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fact, claim string
		want        check.Verdict
	}{
		{"Kim treats adults. Osei treats children.", "Osei treats adults.", check.Unchecked},
		{"Kim treats adults. Osei treats children.", "Kim treats children.", check.Contradicted},
		{"Kim treats adults. Osei treats children.", "Osei treats children.", check.Supported},
		{
			"The landlord must repair the heating. The tenant must clean the stairs.",
			"The tenant must repair the heating.", check.Contradicted,
		},
		{
			"The landlord must repair the heating. The tenant must clean the stairs.",
			"The heating must be repaired by the landlord.", check.Supported,
		},
		{"The landlord must repair the heating.", "The landlord may repair the heating.", check.Unchecked},
		{
			"Kim leads the cardiology department since 2019. Before her, Osei led it for eight years.",
			"Osei leads the cardiology department.", check.Unchecked,
		},
		{
			"The bakery sells bread every day. Cakes are sold on weekends only.",
			"Bread is sold on weekends only.", check.Unchecked,
		},
		{
			"The harbour was built by Anna Berg. It opened in 1962 and closed in 1990.",
			"The harbour closed in 1990.", check.Supported,
		},
		{"Acme was founded in 1990. The company employs 200 people.", "Acme employs 200 people.", check.Supported},
		{"Plan A includes backups. Plan B includes monitoring.", "Plan B includes backups.", check.Unchecked},
		{"The sale lasts from 3 May to 9 May.", "The sale ends on 3 May.", check.Unchecked},
		{"The lake is open from June to September.", "The lake opens in September.", check.Unchecked},
		{"The repair costs 240 euros including materials.", "Materials cost extra.", check.Unchecked},
		{
			"Lisa was born on 3 March 1980. Paul was born on 5 May 1985.",
			"Paul is older than Lisa.", check.Unchecked,
		},
		{"Paul is older than Lisa.", "Paul is older than Lisa is.", check.Supported},
		{
			"Hotel Sol costs 90 euros. Hotel Mar costs 120 euros.",
			"Hotel Sol costs 30 euros more.", check.Unchecked,
		},
		{"The course runs from 2 March to 24 April 2026.", "The course starts on 24 April.", check.Unchecked},
		{"The course runs from 2 March to 24 April 2026.", "The course starts on 2 March.", check.Supported},
		{"The shop is open from 9 am to 5 pm.", "The shop opens at 5 pm.", check.Unchecked},
		{"The shop is open from 9 am to 5 pm.", "The shop opens at 9 am.", check.Supported},
		{"Delivery takes 3 to 5 working days.", "Delivery takes at least 5 working days.", check.Unchecked},
	} {
		wantVerdict(t, entails, c.fact, c.claim, c.want)
	}
}

// TestWhatFollowsIsNotRefuted checks that a claim which a judge refutes for its numbers is left
// open if arithmetic, the calendar or a bound may confirm it.
func TestWhatFollowsIsNotRefuted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fact, claim string
		want        check.Verdict
	}{
		{"The concert is on 12 June 2026.", "The concert takes place on Friday 12 June 2026.", check.Unchecked},
		{"The concert is on 12 June 2026.", "The concert takes place on Saturday 12 June 2026.", check.Contradicted},
		{"A ticket costs 20 euros.", "Two tickets cost 40 euros.", check.Supported},
		{"A ticket costs 20 euros.", "Two tickets cost 50 euros.", check.Contradicted},
		{"The rent is 700 euros a month.", "Six months cost 4,200 euros.", check.Unchecked},
		{"A ticket costs 20 euros, members pay 15 euros.", "Members save 5 euros.", check.Supported},
		{
			"The parcel was shipped on 3 March 2026 and delivered on 7 March 2026.",
			"The parcel was delivered 4 days later.", check.Supported,
		},
		{
			"The parcel was shipped on 3 March 2026 and delivered on 7 March 2026.",
			"The parcel was delivered 6 days later.", check.Unsupported,
		},
		{"The ward has 12 nurses and 4 doctors.", "In total there are 16 people.", check.Unchecked},
		{"The ward has 12 nurses and 4 doctors.", "In total there are 18 people.", check.Unsupported},
		{
			"Team leads can approve invoices of up to 5,000 euros.",
			"A team lead can approve an invoice of 4,000 euros.", check.Unchecked,
		},
		{
			"Team leads can approve invoices of up to 5,000 euros.",
			"A team lead can approve an invoice of 6,000 euros.", check.Contradicted,
		},
		{
			"Team leads can approve invoices of up to 5,000 euros.",
			"There is a limit of 4,000 euros for team leads.", check.Contradicted,
		},
		{"The office is open Monday to Friday 9:00–17:00.", "The office is closed on Sundays.", check.Unchecked},
		{"The office is open Monday to Friday 9:00–17:00.", "The office is open on Wednesdays.", check.Unchecked},
		{"The office is open Monday to Friday 9:00–17:00.", "The office is open on Sundays.", check.Contradicted},
		{"The office is open Monday–Friday.", "The office is closed on Wednesdays.", check.Contradicted},
		{"The gym is open on weekends.", "The gym is open on Sunday.", check.Unchecked},
		{"The gym is open on weekends.", "The gym is open on Monday.", check.Contradicted},
		{"A ticket costs 20 euros.", "Two years ago a ticket cost 40 euros.", check.Contradicted},
		{"The office is open on Mondays.", "The office is closed on Mondays.", check.Contradicted},
	} {
		wantVerdict(t, contradicts, c.fact, c.claim, c.want)
	}
}
