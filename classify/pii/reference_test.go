package pii

import "testing"

func TestPointersOfProgrammersAreNobodysSites(t *testing.T) {
	for _, text := range []string{
		"Reviewed-on: https://review.lindenport.com/c/proposal/+/644615",
		"Build-Log-ID: https://lindenport.com/threads/T-019fcd6b-0068",
		"- [Handoffs](https://lindenport.github.io/agents/handoffs/): how to pass on",
		"+- [Voice](https://lindenport.io/ref/voice/): interfaces for voices",
		`It follows the <a href="https://lindenport.org/spec/1">pattern</a> then`,
		"[`async`]: https://lindenport.org/std/keyword.async.html",
		"// For details of the format, see https://lindenport.dev/devcontainer.json",
		"It is told in https://docs.lindenport.com/latest/ at length",
		"The answer of https://api.lindenport.com/v2/users is empty then",
		"the address is https://lindenport.com/todos/${id} then",
		"as https://www.ruby-lang.org/en/ says",
		"edit the extension.properties and begin again",
		"return data.ge",
		"Preparing for 7.2.3.1 release today",
		"Bump activesupport from 7.2.3 to 7.2.3.1 (#4016)",
		"max_age: 31_536_000 and more of it",
		`  "Arena (hard) - 2024-07-16": 1101,`,
		"-rw-r--r-- 1 jo dev 515 Mar 20 22:43 m4/as_case.m4",
		"+@pytest.mark.asyncio",
		"I am 25 000 km away, aged 43,5 and 25 000 years old",
	} {
		if got := Patterns(text, nil); len(got) > 0 {
			t.Errorf("%q gave %q", text, found(text, got))
		}
	}
}

func TestSitesOfPeopleAreFoundAmongPointers(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"Web-Site: https://lindqvist-cheese.com/", "https://lindqvist-cheese.com/"},
		{
			"see [my blog](https://lindqvist.net/2024/birds) there",
			"https://lindqvist.net/2024/birds",
		},
		{"[site](https://lindqvist.net/)", "https://lindqvist.net/"},
		{
			"[Link](https://medium.com/@jolindqvist12/a-story)",
			"https://medium.com/@jolindqvist12/a-story",
		},
		{"My docs are at https://docs.lindqvist.net/ as you know", "https://docs.lindqvist.net/"},
		{
			"a shop, https://lindqvist-cheese.com/order, opened",
			"https://lindqvist-cheese.com/order",
		},
	} {
		got := found(tt.text, Patterns(tt.text, nil))
		if len(got) != 1 || got[0] != "DOMAIN_NAME:"+tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestTheModelDoesNotMakePartsOfWordsPersonal(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct{ text, guess, kind string }{
		{"color: #dd1144", "dd1144", ZipCode},
		{"the Meta-Llama-3-8B-Instruct of them", "8B", ZipCode},
		{"[issue-61949] is told there", "61949", ZipCode},
		{"run it with gpt-4-turbo-2024-04-09 then", "2024-04-09", DateTime},
		{"run it with gpt-4-turbo-2024-04-09 then", "09", DateTime},
		{"[25/41] Resolving deltas", "25", DateTime},
		{"[9/12] Linking of them", "12", DateTime},
		{`  "Arena (hard) - 2024-07-16": 1101,`, "2024", DateTime},
		{" * Copyright (C) 2022 Square, Inc.", "2022 Square", StreetAddress},
		{"使用组件的依存関係について", "依存関係", StreetAddress},
		{"a fixed max age traded that away", "age", Age},
		{"for n in 1 2 4 8 16 32 64 128", "1 2 4 8 16 32 64 128", PhoneNumber},
		{`the "ms-python.python" of it`, "ms", Title},
		{"+@pytest.mark.asyncio", "pytest.mark.asyncio", Person},
		{"-rw-r--r-- 1 jo dev 515 Mar 20 22:43 m4/as_case.m4", "22", DateTime},
		{"* jq is in [Arch](https://archlinux.org/packages/?q=jq) too", "archlinux", Organization},
	} {
		toks := tokens(t, tt.text, []piece{{tt.guess, "B-" + tt.kind, 0.97}})
		if got := d.Fuse(tt.text, nil, toks, nil); len(got) > 0 {
			t.Errorf("%q, guess %q gave %q", tt.text, tt.guess, found(tt.text, got))
		}
	}
}

func TestAddressesOfScriptsWithoutSpacesAreFound(t *testing.T) {
	d := decoder(t)
	for _, text := range []string{"北京市朝阳区建国路", "東京都渋谷区", "서울시 강남구 테헤란로"} {
		toks := tokens(t, text, []piece{{text, "B-" + StreetAddress, 0.97}})
		if got := d.Fuse(text, nil, toks, nil); len(got) != 1 {
			t.Errorf("%q gave %q", text, found(text, got))
		}
	}
}
