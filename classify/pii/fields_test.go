package pii

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeysSayWhatTheirValuesAre(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want []string
	}{
		{
			`{"customer":{"first_name":"Mehmet","last_name":"Yıldırım"}}`,
			[]string{"PERSON:Mehmet", "PERSON:Yıldırım"},
		},
		{`{"user":{"firstName": "Claire", "lastName": "Dubois"}}`, []string{"PERSON:Claire", "PERSON:Dubois"}},
		{`{"first_name":"Rose","last_name":"King"}`, []string{"PERSON:Rose", "PERSON:King"}},
		{`{"surname":"van den Berg"}`, []string{"PERSON:van den Berg"}},
		{`{"full_name":"García, Ana"}`, []string{"PERSON:García, Ana"}},
		{
			"FIRST_NAME;LAST_NAME;CITY\nJOHN;O'NEILL;CORK\nZOË;DA SILVA;PORTO\n",
			[]string{"PERSON:JOHN", "PERSON:O'NEILL", "PERSON:ZOË", "PERSON:DA SILVA"},
		},
		{`{\"surname\": \"Dubois\"}`, []string{"PERSON:Dubois"}},
		{`{"first":"Mehmet","last":"Yıldırım"}`, []string{"PERSON:Mehmet", "PERSON:Yıldırım"}},
		{`{"name":"Mehmet Yıldırım","city":"Izmir"}`, []string{"PERSON:Mehmet Yıldırım"}},
		{
			"{\n  \"name\": \"Ana de la Cruz\",\n  \"dob\": \"1984-03-12\"\n}",
			[]string{"PERSON:Ana de la Cruz", "DATE_TIME:1984-03-12"},
		},
		{
			`{"full_name":"Siobhán O'Sullivan","phone":"86 123 4567"}`,
			[]string{"PERSON:Siobhán O'Sullivan", "PHONE_NUMBER:86 123 4567"},
		},
		{
			`INFO user="Claire Dubois" ip=83.12.4.99 login ok`,
			[]string{"PERSON:Claire Dubois", "IP_ADDRESS:83.12.4.99"},
		},
		{`name=Thabo Mokoena;ip=83.12.4.99`, []string{"PERSON:Thabo Mokoena", "IP_ADDRESS:83.12.4.99"}},
		{`first_name=Thabo last_name=Mokoena state=new`, []string{"PERSON:Thabo", "PERSON:Mokoena"}},
		{"surname: Lindqvist\nphone: 070-123 45 67\n", []string{"PERSON:Lindqvist", "PHONE_NUMBER:070-123 45 67"}},
		{
			`<name>Claire Dubois</name><street>12 rue Victor Hugo</street>`,
			[]string{"PERSON:Claire Dubois", "STREET_ADDRESS:12 rue Victor Hugo"},
		},
		{
			`<customer first-name="Jo" surname="Müller-Lüdenscheidt"/>`,
			[]string{"PERSON:Jo", "PERSON:Müller-Lüdenscheidt"},
		},
		{`{"customer_name":"田中太郎"}`, []string{"PERSON:田中太郎"}},
		{
			"first_name,last_name,city\nClaire,Dubois,Lyon\nThabo,Mokoena,Durban\n\nnext,line,here\n",
			[]string{"PERSON:Claire", "PERSON:Dubois", "PERSON:Thabo", "PERSON:Mokoena"},
		},
		{
			"id;Name;Phone\n1;\"Anna Lindqvist\";082 123 4567\r\n2;Thabo Mokoena;n/a\n",
			[]string{"PERSON:Anna Lindqvist", "PHONE_NUMBER:082 123 4567", "PERSON:Thabo Mokoena"},
		},
		{
			"| Name | Phone |\n| --- | --- |\n| Thabo Mokoena | 082 123 4567 |\n",
			[]string{"PERSON:Thabo Mokoena", "PHONE_NUMBER:082 123 4567"},
		},
	} {
		if diff := cmp.Diff(tt.want, found(tt.text, Patterns(tt.text, nil))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestKeysOfThingsSayNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"name":"get_weather","city":"Berlin"}`,
		`{"name": "Berlin", "country": "Germany", "zip": "x"}`,
		`{"name":"Berlin Weather Service","email":"x"}`,
		`{"name":"Claire Dubois"}`, // of a ship, perhaps
		`{"name":"Visual Studio","version":"1.2"}`,
		`name=nginx phone=none`,
		`user=root email=none`,
		`{"first_name": "STRING", "last_name": "N/A"}`,
		`{"surname": "ID", "first_name": "A1B2C3"}`,
		`{"first_name": {"type": "string"}, "last_name": {"type": "string"}}`,
		`{"first_name": "First Name", "last_name": "Last Name"}`,
		`const firstName = Person.first; let lastName = LastName;`,
		`firstName: String, lastName: Optional<String>`,
		`firstName: string; surname?: string;`,
		`surname = models.CharField(max_length=30)`,
		`surname = Field(default=None)`,
		`std::surname::Value`,
		`if surname == Other { return }`,
		`SELECT first_name, last_name FROM users WHERE surname = $1`,
		`INSERT INTO users (first_name, last_name, phone) VALUES ($1, $2, $3)`,
		"first_name,last_name,phone\nstring,string,string\n",
		"name,version,size\nVisual Studio,1,2\n",
		"name,age\n",
		`{"phone":"000000000","street":"string"}`,
		`<name>my-service</name><city>x</city>`,
		`<property name="Hibernate Dialect" value="x"/>`,
		`func (u *User) Phone(first, last string) (name string, err error) {`,
		`{"street_view":"Main Road 5","phone_pattern":"x"}`,
		`author: Continuous Integration`,
		`mobile: 12px; tel: 3`,
	} {
		if got := Patterns(text, nil); len(got) > 0 {
			t.Errorf("%q gave %q", text, found(text, got))
		}
	}
}
