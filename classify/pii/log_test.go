package pii

import (
	"slices"
	"testing"
)

func TestWhatLoggersWriteIsNobodysDateOrName(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct{ text, guess, kind string }{
		{"- 1132566461 2005.11.21 node7 Nov 21 09:47:41 node7/node7 ntpd[11]: synchronized, stratum 3", "stratum 3", "STREET_ADDRESS"},
		{"- 1132566461 2005.11.21 node7 Nov 21 09:47:41 node7/node7 ntpd[11]: synchronized, stratum 3", "1132566461 2005.11.21", "PHONE_NUMBER"},
		{"- 1132566461 2005.11.21 node7 Nov 21 09:47:41 local@node7 net: registered protocol family 10", "47", "DATE_TIME"},
		{"04-18 16:13:47.289  1702 17633 W Windows: the change in focus caused us to need a layout", "04-18", "DATE_TIME"},
		{"04-18 16:13:47.289  1702 17633 W Windows: the change in Harbor caused us to need a layout", "Harbor", "PERSON"},
		{"[08.27 14:31:08] chrome.exe - closed, 0 bytes sent and 0 bytes received, lifetime 07:05", "08", "DATE_TIME"},
		{"[08.27 14:31:08] chrome.exe - closed, 0 bytes sent and 0 bytes received, lifetime 07:05", "05", "DATE_TIME"},
		{"Dec 11 11:00:59 lab sshd[25283]: failed password for invalid user robin from somewhere else", "robin", "PERSON"},
		{"Dec 11 11:00:59 lab cups: the daemon of the printers was shut down by Robin and started", "Robin", "PERSON"},
		{"2016-09-29 04:30:31, Info  CBS  the loaded stack of Orlando is ready to serve it all", "Orlando", "GPE"},
		{"081110 203615 148 INFO the responder of Robin for the block is about to terminate now", "Robin", "PERSON"},
		{"081110 203615 148 INFO the responder of Robin for the block is about to terminate now", "081110", "DATE_TIME"},
		{"a request of an old client, 10.20.34.25:44819, will be dropped by this server", "10", "DATE_TIME"},
	} {
		toks := tokens(t, tt.text, []piece{{tt.guess, "B-" + tt.kind, 0.85}})
		if got := d.Fuse(tt.text, Patterns(tt.text, nil), toks, nil); len(got) > 0 {
			t.Errorf("%q, guess %q gave %q", tt.text, tt.guess, scored(tt.text, got))
		}
	}
}

func TestHostsAndPackagesWithNumbersAreNobodys(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct{ text, guess string }{
		{"Jul 3 19:48:11 visitor-10-105-163-212 com.acme.cts[258]: told to run", "10-105-163-212"},
		{"we read out what is known and what applies for the cached package: X_for_KB3037574~31bf38~amd64~~6.1.1.0, of state one", "KB3037574"},
	} {
		toks := tokens(t, tt.text, []piece{{tt.guess, "B-PHONE_NUMBER", 0.85}})
		if got := d.Fuse(tt.text, Patterns(tt.text, nil), toks, nil); len(got) > 0 {
			t.Errorf("%q gave %q", tt.text, scored(tt.text, got))
		}
	}
}

func TestPersonalDataBehindTheHeadOfALogIsFound(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct{ text, guess, kind, want string }{
		{"04-18 16:13:47.289  1702 17633 I Dialer: outgoing call to +49 30 901820 was started", "901820", "O", "+49 30 901820"},
		{"Dec 11 11:00:59 lab pbx[25283]: the caller 0171 2345678 was put through to the agent", "0171 2345678", "PHONE_NUMBER", "0171 2345678"},
		{"2024-05-06 10:11:12 WARN the user John Smith could not be reached and was told so", "John Smith", "PERSON", "John Smith"},
		{"2024-05-06 10:11:12 WARN the patient is known and was born 1980-03-04 in this town", "1980-03-04", "DATE_TIME", "1980-03-04"},
		{"[10:15:30] Anna: see you tomorrow at the lake of the swans, my friend", "Anna", "PERSON", "Anna"},
		{"[08.27 14:31:08] Anna: see you tomorrow at the lake of the swans, my friend", "Anna", "PERSON", "Anna"},
	} {
		toks := tokens(t, tt.text, []piece{{tt.guess, "B-" + tt.kind, 0.99}})
		got := d.Fuse(tt.text, Patterns(tt.text, nil), toks, nil)
		if !slices.ContainsFunc(got, func(s Span) bool { return tt.text[s.Start:s.End] == tt.want }) {
			t.Errorf("%q gave %q, want %q", tt.text, scored(tt.text, got), tt.want)
		}
	}
}

func TestAGuessAtAPartOfAClockIsWidened(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct{ text, guess, want string }{
		{"she came at 12:10:55 and left", "10:55", "12:10:55"},
		{"see you on 3.11. at noon", "3", "3.11"},
		{"version 3.11.2 is out", "11", ""},
	} {
		toks := tokens(t, tt.text, []piece{{tt.guess, "B-DATE_TIME", 0.9}})
		got := ""
		for _, s := range d.Fuse(tt.text, Patterns(tt.text, nil), toks, nil) {
			got += tt.text[s.Start:s.End]
		}
		if got != tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}
