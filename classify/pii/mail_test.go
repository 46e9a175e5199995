package pii

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mails returns the addresses of mail that the patterns find.
func mails(text string) (out []string) {
	for _, s := range Patterns(text, nil) {
		if s.Type == EmailAddress {
			out = append(out, text[s.Start:s.End])
		}
	}
	return out
}

func TestAnAddressOfMailBeginsBehindItsKey(t *testing.T) {
	for _, text := range []string{
		"sent customer=|anna.karlsson@example.org| took=3ms",
		"id=2 to=|anna.karlsson@example.org|,",
		"SMTP_USER=|wei.wang@example.com|",
		"user_email=|wei.wang@example.com|",
		"git -c user.email=|wei.wang@example.com| commit --author-mail=|wei.wang@example.com|",
		"--notify=|ann@example.com|",
		"email='|ann@example.com|'",
		"where email==|ann@example.com|",
		"filter=email=|ann@example.com|",
		"größe=|ann@example.com|",
		"curl 'https://api.example.net/users?email=|anna.karlsson@example.org|&page=2'",
		"GET /users?page=2&email=|ann@example.org| HTTP/1.1",
		"page=2&to=|ann@example.org|&cc=|bo@example.org|",
		"mailto:|ann@example.org|?cc=|bo@example.org|",
		"https://api.example.net/users/|ann@example.org|/mails",
		"http://localhost:8080/users/|ann@example.org|",
		"DELETE /users/|ann@example.org| and ~/mail/|bo@example.org|",
		"https://api.example.net/" + strings.Repeat("long/", 20) + "users?email=|anna.karlsson@example.org|",
	} {
		var want []string
		for i, part := range strings.Split(text, "|") {
			if i%2 == 1 {
				want = append(want, part)
			}
		}
		text := strings.ReplaceAll(text, "|", "")
		if diff := cmp.Diff(want, mails(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestALocalPartKeepsTheSignsThatAreItsOwn(t *testing.T) {
	for _, address := range []string{
		"bounce+user=example.com@list.org",
		"list-return-42-anna=example.com@lists.example",
		"anna.lind=example.com__0-6l3u3x@x.bnc.salesforce.com",
		"SRS0=HHH=TT=example.com=anna@forward.example",
		"prvs=4567abcdef=anna@example.org",
		"sales/anna@example.org",
		"a&b@example.org",
		"who?@example.org",
		"anna=@example.org",
	} {
		if diff := cmp.Diff([]string{address}, mails("mail "+address+" now")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if got := mails("by /G=Anna/S=Lind@example.org"); len(got) != 1 || got[0] != "G=Anna/S=Lind@example.org" {
		t.Errorf("X.400: %q", got)
	}
	if got := mails("@example.org, https://medium.com/@ann.example.org/post"); len(got) > 0 {
		t.Errorf("nobody's address: %q", got)
	}
}

func TestAddressesOfMailInAddressesOfSites(t *testing.T) {
	for text, want := range map[string][]string{
		"https://www.nordkontor.se/users?email=ann@posteo.net&page=2": {
			"DOMAIN_NAME:https://www.nordkontor.se/users?email=", "EMAIL_ADDRESS:ann@posteo.net",
		},
		"www.nordkontor.se/users/ann%40posteo.net?cc=bo@posteo.net": {
			"DOMAIN_NAME:www.nordkontor.se/users/", "EMAIL_ADDRESS:ann%40posteo.net",
			"EMAIL_ADDRESS:bo@posteo.net",
		},
		"https://docs.nordkontor.se/users/ann@posteo.net":   {"EMAIL_ADDRESS:ann@posteo.net"},
		"https://api.nordkontor.se/?u=ann@bücher.example/x": {"EMAIL_ADDRESS:ann@bücher.example"},
		"https://www.nordkontor.se/npm/@types/node@20.1.0": {
			"DOMAIN_NAME:https://www.nordkontor.se/npm/@types/node@20.1.0",
		},
	} {
		got := Patterns(text, nil)
		if diff := cmp.Diff(want, found(text, got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		check(t, text, got)
	}
}
