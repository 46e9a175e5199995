package pii

import (
	"strings"
	"testing"
)

func TestAddressesThatBeginWithTheWordForAStreet(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"Calle Mayor 45, 28013 Madrid", "STREET_ADDRESS:Calle Mayor 45, 28013 Madrid"},
		{"vivo en calle de la Rosa nº 7 desde mayo", "STREET_ADDRESS:calle de la Rosa nº 7"},
		{"Abito in via Garibaldi 12, 40121 Bologna.", "STREET_ADDRESS:via Garibaldi 12, 40121 Bologna"},
		{"Una casa che non vedo, in via Roma 3", "STREET_ADDRESS:via Roma 3"},
		{"Endereço: Rua das Flores, 123, perto", "STREET_ADDRESS:Rua das Flores, 123"},
		{"Avenida da Liberdade 110, 1250-146 Lisboa", "STREET_ADDRESS:Avenida da Liberdade 110, 1250-146 Lisboa"},
		{"przy ul. Długa 14/3, 00-238 Warszawa.", "STREET_ADDRESS:ul. Długa 14/3, 00-238 Warszawa"},
		{"27 rue des Tanneurs, 59000 Lille", "STREET_ADDRESS:27 rue des Tanneurs, 59000 Lille"},
		{"au 3 bis, rue Victor Hugo", "STREET_ADDRESS:3 bis, rue Victor Hugo"},
		{"5 place du Marché, 67000 Strasbourg", "STREET_ADDRESS:5 place du Marché, 67000 Strasbourg"},
		{"Schillerstraße 14\n90409 Nürnberg\n", "STREET_ADDRESS:Schillerstraße 14\n90409 Nürnberg"},
		{"Domkloster 4, 61348 Bad Homburg.", "STREET_ADDRESS:Domkloster 4, 61348 Bad Homburg"},
		{"Kerkstraat 18, 3511 KX Utrecht", "STREET_ADDRESS:Kerkstraat 18, 3511 KX Utrecht"},
		{"12 Harbour View Road, Swansea SA1 8QY", "STREET_ADDRESS:12 Harbour View Road, Swansea SA1 8QY"},
		{"19 Cavendish Square, London W1G 0PJ.", "STREET_ADDRESS:19 Cavendish Square, London W1G 0PJ"},

		{"ecco il mio, nuovo e non più vecchio: via Roma 5, scala B", "STREET_ADDRESS:via Roma 5"},
		{"Siamo vicini, non lontani: via Roma 12 è la casa della nonna", "STREET_ADDRESS:via Roma 12"},
		{"Wir wohnen via Roma 12, 39100 Bozen, und nicht da", "STREET_ADDRESS:via Roma 12, 39100 Bozen"},
		{"al. Jerozolimskie 5 jest tam", "STREET_ADDRESS:al. Jerozolimskie 5"},
		{"moro na Av. Paulista 1000 e gosto", "STREET_ADDRESS:Av. Paulista 1000"},
		{"vive in corso Garibaldi 12 che", "STREET_ADDRESS:corso Garibaldi 12"},
		{"12 cours de Vincennes, 75020 Paris", "STREET_ADDRESS:12 cours de Vincennes, 75020 Paris"},
		{"au 5 rue de l'Église", "STREET_ADDRESS:5 rue de l'Église"},
		{"au 5 rue de l’Église", "STREET_ADDRESS:5 rue de l’Église"},
		{"8 rue d'Alsace, 75010 Paris", "STREET_ADDRESS:8 rue d'Alsace, 75010 Paris"},
		{"5 place de l'Hôtel de Ville, 76000 Rouen", "STREET_ADDRESS:5 place de l'Hôtel de Ville, 76000 Rouen"},

		{"Die Verbindung wird via USB 3 hergestellt und ist nicht schnell", ""},
		{"Via Windows 11 kunt u dit instellen", ""},
		{"Le client se connecte via Teams 2 et il est content", ""},
		{"conectado via Bluetooth 5 ao computador", ""},
		{"en ny version av Windows 11 kommer snart, och det är bra", ""},
		{"según informa al Jazeera 24 en la web", ""},
		{"va al Real Madrid 3 de la liga", ""},
		{"il corso Java 8 è online", ""},
		{"le cours de Python 3 commence lundi", ""},
		{"il y a 3 cours de Maths et 2 cours de Français", ""},
		{"12 cours d'eau", ""},
		{"We sent it via Zoom 12 times", ""},
		{"it went via Port 8080 and via Gmail 2", ""},
		{"the av Foo 3 flag of Gore 2000", ""},
		{"5 place settings and 12 place Holders", ""},
		{"ulica jest 3 metry dalej", ""},
		{"la rue est à 3 km", ""},
		{"corso di italiano 3", ""},
		{"Schillerstraße 14\n90409 Stück auf Lager\n", "STREET_ADDRESS:Schillerstraße 14"},
	} {
		if got := strings.Join(found(tt.text, Patterns(tt.text, nil)), ","); got != tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}
