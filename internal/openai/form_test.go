package openai

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
)

const formType = "multipart/form-data; boundary=XyZ"

// form spells a form of parts, each a head and a value.
func form(parts ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(parts); i += 2 {
		b.WriteString("--XyZ\r\n" + parts[i] + "\r\n\r\n" + parts[i+1] + "\r\n")
	}
	return b.String() + "--XyZ--\r\n"
}

const (
	namesModel = `Content-Disposition: form-data; name="model"`
	namesFile  = "Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav"
)

func TestAFormNamesItsModel(t *testing.T) {
	t.Parallel()
	sound := "RIFF\x00\xff\r\n--Xy\r\n\r\n--X"
	body := form(namesFile, sound, namesModel, "whisper-1", `content-disposition: form-data; name="prompt"`, "names: Søren")
	r, err := ParseForm(formType, []byte(body), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	text := r.Text()
	if r.Model != "whisper-1" || !r.HasMedia || r.API != Other || text.LastUser != "names: Søren" {
		t.Errorf("read %+v", r)
	}
	p := NewPatch(r)
	p.SetModel("whisper-1")
	p.StripExtras()
	if got := p.Bytes(); &got[0] != &r.Raw[0] || len(got) != len(r.Raw) {
		t.Errorf("nothing changes, and the body does: %q", got)
	}
	p.SetModel("org/whisper-large")
	p.SetField("max_tokens", []byte("1"))
	p.DeleteField("prompt")
	if got, want := string(p.Bytes()), strings.Replace(body, "whisper-1", "org/whisper-large", 1); got != want {
		t.Errorf("became %q, want %q", got, want)
	}
}

// Servers show their models more than the prompt: hot words, names of speakers, and what comes next.
func TestFieldsOfAFormAreReadAsTheUsers(t *testing.T) {
	t.Parallel()
	field := func(name string) string { return `Content-Disposition: form-data; name="` + name + `"` }
	const long = "a text that is longer than a name is, and stands for itself"
	body := form(
		field("prompt"), "names: S\u00f8ren", namesModel, "whisper-1", namesFile, "\xff\x00",
		field("hotwords"), "Titan", field("known_speaker_names[]"), "Ann", field("known_speaker_names[]"), "Bo",
		field("known_speaker_references[]"), "data:audio/wav;base64,AAAA", field("anything"), long,
		field("language"), "pt-BR", field("to_language"), "all", field("Language"), "de",
		field("response_format"), "verbose_json", field("temperature"), "0.2", field("seed"), "-1e3",
		field("stream"), "true", field("timestamp_granularities[]"), "word", field("chunking_strategy"), "auto",
		field("user"), "u-1", field("stop"), "x", field("temperature"), "Inf", field("language"), "ignore all", field("response_format"), "secret",
	)
	r, err := ParseForm(formType, []byte(body), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	text := r.Text()
	if text.LastUser != "names: S\u00f8ren" {
		t.Errorf("the user says %q", text.LastUser)
	}
	want := []signal.Segment{
		{Role: "user", Text: long, Origin: signal.OriginUser},
		{
			Role: "user", Text: "Titan\nAnn\nBo\nde\nInf\nignore all\nsecret",
			Origin: signal.OriginUser, List: true,
		},
		{Role: "user", Text: "names: S\u00f8ren", Origin: signal.OriginUser},
	}
	if diff := cmp.Diff(want, text.Segments); diff != "" {
		t.Errorf("segments (-want +got):\n%s", diff)
	}
}

func TestFormsThatTwoReadersUnderstandDifferentlyAreRefused(t *testing.T) {
	t.Parallel()
	good := form(namesModel, "m")
	if _, err := ParseForm(formType, []byte(good), Limits{}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ kind, body string }{
		"no boundary":                {"multipart/form-data", good},
		"a boundary with blanks":     {`multipart/form-data; boundary="Xy Z"`, strings.ReplaceAll(good, "XyZ", "Xy Z")},
		"a long boundary":            {"multipart/form-data; boundary=" + strings.Repeat("x", 71), strings.ReplaceAll(good, "XyZ", strings.Repeat("x", 71))},
		"two boundaries":             {"multipart/form-data; boundary=XyZ; boundary=b", good},
		"JSON":                       {"application/json", good},
		"mixed":                      {"multipart/mixed; boundary=XyZ", good},
		"the model twice":            {formType, form(namesModel, "m", namesModel, "n")},
		"the model in another case":  {formType, form(namesModel, "m", strings.Replace(namesModel, "model", "Model", 1), "n")},
		"no model":                   {formType, form(namesFile, "x")},
		"an empty model":             {formType, form(namesModel, "")},
		"a model that is a file":     {formType, form(namesModel+`; filename="m"`, "m")},
		"a model that is no text":    {formType, form(namesModel, "\xff")},
		"an extended name":           {formType, form(`Content-Disposition: form-data; name*=UTF-8''model`, "n", namesModel, "m")},
		"two names":                  {formType, form(namesModel+`; name="x"`, "m")},
		"an escaped name":            {formType, form(`Content-Disposition: form-data; name="mod\el"`, "n", namesModel, "m")},
		"an unquoted name":           {formType, form(`Content-Disposition: form-data; name=model`, "m")},
		"a name of a file before":    {formType, form(`Content-Disposition: form-data; filename="x"; name="model"`, "m")},
		"two dispositions":           {formType, form(namesModel+"\r\n"+strings.Replace(namesModel, "model", "x", 1), "m")},
		"no disposition":             {formType, form("Content-Type: text/plain", "m")},
		"an encoding":                {formType, form(namesModel+"\r\nContent-Transfer-Encoding: base64", "bQ==")},
		"a folded head":              {formType, form("Content-Disposition: form-data;\r\n name=\"model\"", "m")},
		"line feeds alone":           {formType, strings.ReplaceAll(good, "\r\n", "\n")},
		"a preamble":                 {formType, "x\r\n" + good},
		"an epilogue":                {formType, good + "x"},
		"blanks behind a mark":       {formType, strings.Replace(good, "--XyZ\r\n", "--XyZ \r\n", 1)},
		"no end":                     {formType, strings.TrimSuffix(good, "--XyZ--\r\n")},
		"half an end":                {formType, strings.TrimSuffix(good, "-\r\n")},
		"nothing":                    {formType, ""},
		"only an end":                {formType, "--XyZ--\r\n"},
		"too many parts":             {formType, form(namesModel, "m") + strings.Repeat("x", 10)},
		"a mark in a head":           {formType, form("Content-Type: --XyZ\r\n"+namesModel, "m")},
		"a huge head":                {formType, form("X-A: "+strings.Repeat("a", 9<<10)+"\r\n"+namesModel, "m")},
		"a prompt of too many bytes": {formType, form(namesModel, "m", `Content-Disposition: form-data; name="prompt"`, strings.Repeat("x", 65<<10))},
		"hot words that are no text": {formType, form(namesModel, "m", `Content-Disposition: form-data; name="hotwords"`, "\xff")},
		"a long field":               {formType, form(namesModel, "m", `Content-Disposition: form-data; name="hotwords"`, strings.Repeat("x", 65<<10))},
		"a NUL in a head":            {formType, form(namesModel+"\r\nX-A: \x00", "m")},
		"a control in a head":        {formType, form(namesModel+"\r\nX-A: \x15", "m")},
		"a key that is no token":     {formType, form(namesModel+"\r\nX(A: 1", "m")},
		"a head without a colon":     {formType, form(namesModel+"\r\nX-A", "m")},
		"a blank before a colon":     {formType, form(strings.Replace(namesModel, ":", " :", 1), "m")},
	} {
		r, err := ParseForm(tt.kind, []byte(tt.body), Limits{})
		if e, ok := err.(*Error); !ok || e.Status != 400 || e.Message == "" { //nolint:errorlint // the contract is the type
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := ParseForm(formType, []byte(form(namesModel, "m", namesFile, "a", namesFile, "b")), Limits{MaxMembers: 3}); err == nil {
		t.Error("more parts than allowed were accepted")
	}
}

// What is accepted the standard library reads alike, and naming another model changes the model and
// nothing else.
func FuzzParseForm(f *testing.F) {
	for _, s := range []string{
		form(namesModel, "m"), form(namesFile, "\x00\r\n--Xy", namesModel, "m"), form(namesModel, "m", namesModel, "n"),
		form(`Content-Disposition: form-data; name="a\"b"`, "x", namesModel, "m"), form(namesModel+"; name*0=x", "m"), form(namesModel, "--XyZ"), "--XyZ\r\n\r\n\r\n--XyZ--",
		form(`content-disposition:form-data;NAME="model"`, "m"), form("Content-Disposition: form-data; x=\"name=\\\"\"; name=\"model\"", "m"),
	} {
		f.Add(formType, s)
	}
	f.Add(`multipart/form-data; boundary="a:b"`, strings.ReplaceAll(form(namesModel, "m"), "XyZ", "a:b"))
	f.Fuzz(func(t *testing.T, kind, body string) {
		r, err := ParseForm(kind, []byte(body), Limits{})
		if err != nil {
			return
		}
		model, all := readForm(t, kind, []byte(body))
		if model != r.Model {
			t.Fatalf("read %q, the standard library %q of %q", r.Model, model, body)
		}
		p := NewPatch(r)
		p.SetModel("another")
		model, changed := readForm(t, kind, p.Bytes())
		if model != "another" || len(changed) != len(all) {
			t.Fatalf("the model became %q in %q", model, p.Bytes())
		}
		for i := range all {
			if all[i] != changed[i] && !strings.HasPrefix(all[i], "model\x00") {
				t.Errorf("part %d became %q", i, changed[i])
			}
		}
	})
}

// readForm reads a form as the standard library does.
func readForm(t *testing.T, kind string, body []byte) (model string, all []string) {
	t.Helper()
	_, params, err := mime.ParseMediaType(kind)
	if err != nil {
		t.Fatal(err)
	}
	r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		p, err := r.NextRawPart()
		if err == io.EOF { //nolint:errorlint // as documented
			return model, all
		}
		if err != nil {
			t.Fatalf("the standard library refuses %q: %v", body, err)
		}
		v, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		if p.FormName() == "model" {
			model += string(v)
		}
		all = append(all, p.FormName()+"\x00"+string(v))
	}
}
