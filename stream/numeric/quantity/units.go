package quantity

// Dim is a dimension: what a unit measures. Values compare only within one dimension. The low byte
// is the dimension above the line, the high byte the one below it: metres per second is length over
// time.
type Dim uint16

// The dimensions that arithmetic treats in ways of their own. There is one for each currency, too,
// as there are no exchange rates here.
const (
	Plain    Dim = 0 // no unit
	Percent  Dim = 1
	Duration Dim = 6
	Multiple Dim = 18 // 3 times, threefold
)

// The others.
const (
	_ Dim = iota // Plain
	_            // Percent
	length
	area
	volume
	mass
	_ // Duration
	temperature
	degree
	storage
	energy
	power
	pressure
	frequency
	voltage
	current
	force
	pixels
	_        // Multiple
	calendar // Date
	clock
	rank
	usd
	eur
	gbp
	jpy
	cny
	inr
	chf
	cad
	aud
	krw
	brl
	rub
	mxn
	sek
	firstCurrency = usd
	lastCurrency  = sek
)

func (d Dim) per(below Dim) Dim { return d | below<<8 }

// Top is the dimension above the line: mass for grams per day. Lists often name what a number is
// per only once.
func (d Dim) Top() Dim { return d & 0xff }

func (d Dim) currency() bool { d &= 0xff; return d >= firstCurrency && d <= lastCurrency }

type unit struct {
	dim    Dim
	factor float64 // base units in one of this
	offset float64
}

// Lengths of the imperial units are exact by the international yard and pound agreement (1959); see
// NIST SP 811, appendix B.
const (
	inch   = 0.0254
	foot   = 0.3048
	yard   = 0.9144
	mile   = 1609.344
	pound  = 0.45359237
	ounce  = pound / 16
	gallon = 3.785411784 // US liquid, litres
	knot   = 1852.0 / 3600
	minute = 60.0
	hour   = 3600.0
	day    = 86400.0
	month  = year / 12
	year   = Year
)

// Year is the Julian year in seconds, the base unit of Duration.
const Year = 365.25 * day

// symbols are units as written after a number, case kept: m is metre, M is not.
//
//nolint:gochecknoglobals // constant table
var symbols = map[string]unit{
	"%": {Percent, 1, 0}, "‰": {Percent, 0.1, 0}, "٪": {Percent, 1, 0}, "％": {Percent, 1, 0},
	"nm": {length, 1e-9, 0}, "µm": {length, 1e-6, 0}, "μm": {length, 1e-6, 0}, "mm": {length, 1e-3, 0}, "cm": {length, 1e-2, 0},
	"dm": {length, 0.1, 0}, "m": {length, 1, 0}, "km": {length, 1e3, 0}, "ft": {length, foot, 0}, "yd": {length, yard, 0},
	"mi": {length, mile, 0}, "in": {length, inch, 0}, "″": {length, inch, 0}, "′": {length, foot, 0}, "米": {length, 1, 0},
	"nmi": {length, 1852, 0}, "AU": {length, 1.495978707e11, 0}, "ly": {length, 9.4607304725808e15, 0},
	"mm²": {area, 1e-6, 0}, "cm²": {area, 1e-4, 0}, "m²": {area, 1, 0}, "m2": {area, 1, 0}, "km²": {area, 1e6, 0}, "km2": {area, 1e6, 0},
	"sqm": {area, 1, 0}, "sqft": {area, foot * foot, 0}, "ha": {area, 1e4, 0}, "ft²": {area, foot * foot, 0}, "ft2": {area, foot * foot, 0}, "mi²": {area, mile * mile, 0},
	"cm³": {volume, 1e-3, 0}, "cm3": {volume, 1e-3, 0}, "cc": {volume, 1e-3, 0}, "m³": {volume, 1e3, 0}, "m3": {volume, 1e3, 0}, "km³": {volume, 1e12, 0},
	"µL": {volume, 1e-6, 0}, "ml": {volume, 1e-3, 0}, "mL": {volume, 1e-3, 0}, "cl": {volume, 1e-2, 0}, "dl": {volume, 0.1, 0},
	"dL": {volume, 0.1, 0}, "l": {volume, 1, 0}, "L": {volume, 1, 0}, "hl": {volume, 100, 0}, "gal": {volume, gallon, 0},
	"pt": {volume, gallon / 8, 0}, "qt": {volume, gallon / 4, 0},
	"µg": {mass, 1e-9, 0}, "μg": {mass, 1e-9, 0}, "mcg": {mass, 1e-9, 0}, "mg": {mass, 1e-6, 0}, "g": {mass, 1e-3, 0}, "kg": {mass, 1, 0},
	"t": {mass, 1e3, 0}, "Mt": {mass, 1e9, 0}, "kt": {mass, 1e6, 0}, "lb": {mass, pound, 0}, "lbs": {mass, pound, 0}, "oz": {mass, ounce, 0},
	"ns": {Duration, 1e-9, 0}, "µs": {Duration, 1e-6, 0}, "μs": {Duration, 1e-6, 0}, "ms": {Duration, 1e-3, 0}, "s": {Duration, 1, 0},
	"sec": {Duration, 1, 0}, "min": {Duration, minute, 0}, "mins": {Duration, minute, 0}, "h": {Duration, hour, 0}, "hr": {Duration, hour, 0},
	"hrs": {Duration, hour, 0}, "Std": {Duration, hour, 0}, "d": {Duration, day, 0}, "yr": {Duration, year, 0}, "yrs": {Duration, year, 0},
	"°C": {temperature, 1, 273.15}, "℃": {temperature, 1, 273.15}, "°F": {temperature, 5.0 / 9, 459.67 * 5 / 9}, "℉": {temperature, 5.0 / 9, 459.67 * 5 / 9},
	"K": {temperature, 1, 0}, "°": {degree, 1, 0},
	"kB": {storage, 1e3, 0}, "KB": {storage, 1e3, 0}, "MB": {storage, 1e6, 0}, "GB": {storage, 1e9, 0}, "TB": {storage, 1e12, 0}, "PB": {storage, 1e15, 0},
	"KiB": {storage, 1 << 10, 0}, "MiB": {storage, 1 << 20, 0}, "GiB": {storage, 1 << 30, 0}, "TiB": {storage, 1 << 40, 0},
	"kb": {storage, 125, 0}, "kbit": {storage, 125, 0}, "Mb": {storage, 125e3, 0}, "Mbit": {storage, 125e3, 0}, "Gb": {storage, 125e6, 0}, "Gbit": {storage, 125e6, 0},
	"kbps": {storage | Duration<<8, 125, 0}, "Mbps": {storage | Duration<<8, 125e3, 0}, "Gbps": {storage | Duration<<8, 125e6, 0},
	"J": {energy, 1, 0}, "kJ": {energy, 1e3, 0}, "MJ": {energy, 1e6, 0}, "GJ": {energy, 1e9, 0}, "cal": {energy, 4.184, 0}, "kcal": {energy, 4184, 0},
	"Wh": {energy, 3600, 0}, "kWh": {energy, 3.6e6, 0}, "MWh": {energy, 3.6e9, 0}, "GWh": {energy, 3.6e12, 0}, "TWh": {energy, 3.6e15, 0}, "BTU": {energy, 1055.05585262, 0},
	"mW": {power, 1e-3, 0}, "W": {power, 1, 0}, "kW": {power, 1e3, 0}, "MW": {power, 1e6, 0}, "GW": {power, 1e9, 0}, "hp": {power, 745.69987158227, 0}, "PS": {power, 735.49875, 0},
	"Pa": {pressure, 1, 0}, "hPa": {pressure, 100, 0}, "kPa": {pressure, 1e3, 0}, "MPa": {pressure, 1e6, 0}, "bar": {pressure, 1e5, 0}, "mbar": {pressure, 100, 0},
	"psi": {pressure, 6894.757293168, 0}, "atm": {pressure, 101325, 0}, "mmHg": {pressure, 133.322387415, 0},
	"Hz": {frequency, 1, 0}, "kHz": {frequency, 1e3, 0}, "MHz": {frequency, 1e6, 0}, "GHz": {frequency, 1e9, 0}, "rpm": {frequency, 1.0 / 60, 0},
	"mV": {voltage, 1e-3, 0}, "V": {voltage, 1, 0}, "kV": {voltage, 1e3, 0}, "mA": {current, 1e-3, 0}, "mAh": {current | Duration<<8, 3.6, 0},
	"N": {force, 1, 0}, "kN": {force, 1e3, 0}, "px": {pixels, 1, 0}, "MP": {pixels, 1e6, 0}, "x": {Multiple, 1, 0}, "×": {Multiple, 1, 0},
	"mph": {length | Duration<<8, mile / hour, 0}, "kph": {length | Duration<<8, 1000 / hour, 0}, "kmh": {length | Duration<<8, 1000 / hour, 0},
	"kn": {length | Duration<<8, knot, 0}, "kt/h": {length | Duration<<8, knot, 0}, "fps": {frequency, 1, 0},
	"$": {usd, 1, 0}, "€": {eur, 1, 0}, "£": {gbp, 1, 0}, "¥": {jpy, 1, 0}, "￥": {cny, 1, 0}, "₹": {inr, 1, 0}, "₩": {krw, 1, 0}, "₽": {rub, 1, 0}, "元": {cny, 1, 0}, "円": {jpy, 1, 0},
	"USD": {usd, 1, 0}, "EUR": {eur, 1, 0}, "GBP": {gbp, 1, 0}, "JPY": {jpy, 1, 0}, "CNY": {cny, 1, 0}, "RMB": {cny, 1, 0}, "INR": {inr, 1, 0}, "Rs": {inr, 1, 0},
	"CHF": {chf, 1, 0}, "CAD": {cad, 1, 0}, "AUD": {aud, 1, 0}, "KRW": {krw, 1, 0}, "BRL": {brl, 1, 0}, "RUB": {rub, 1, 0}, "MXN": {mxn, 1, 0}, "SEK": {sek, 1, 0},
}

// unitNames are units in words, folded to lower case.
//
//nolint:gochecknoglobals // constant table
var unitNames = names(map[string]unit{
	"percent per-cent prozent pourcent":                                                                      {Percent, 1, 0},
	"nanometer nanometers nanometre nanometres":                                                              {length, 1e-9, 0},
	"micrometer micrometers micrometre micrometres micron microns":                                           {length, 1e-6, 0},
	"millimeter millimeters millimetre millimetres millimètre millimètres milímetro milímetros":              {length, 1e-3, 0},
	"centimeter centimeters centimetre centimetres zentimeter centimètre centimètres centímetro centímetros": {length, 1e-2, 0},
	"meter meters metre metres metern mètre mètres metro metros":                                             {length, 1, 0},
	"kilometer kilometers kilometre kilometres kilometern kilomètre kilomètres kilómetro kilómetros kms":     {length, 1e3, 0},
	"inch inches zoll":           {length, inch, 0},
	"foot feet fuß":              {length, foot, 0},
	"yard yards":                 {length, yard, 0},
	"mile miles meilen":          {length, mile, 0},
	"light-year light-years":     {length, 9.4607304725808e15, 0},
	"hectare hectares hektar":    {area, 1e4, 0},
	"acre acres":                 {area, 4046.8564224, 0},
	"quadratmeter quadratmetern": {area, 1, 0},
	"quadratkilometer":           {area, 1e6, 0},
	"kubikmeter":                 {volume, 1e3, 0},
	"milliliter milliliters millilitre millilitres": {volume, 1e-3, 0},
	"liter liters litre litres litern litro litros": {volume, 1, 0},
	"gallon gallons":                  {volume, gallon, 0},
	"barrel barrels":                  {volume, 158.987294928, 0},
	"pint pints":                      {volume, gallon / 8, 0},
	"quart quarts":                    {volume, gallon / 4, 0},
	"milligram milligrams milligramm": {mass, 1e-6, 0},
	"microgram micrograms":            {mass, 1e-9, 0},
	"gram grams gramm gramme grammes gramo gramos":                                        {mass, 1e-3, 0},
	"kilogram kilograms kilo kilos kilogramm kilogramme kilogrammes kilogramo kilogramos": {mass, 1, 0},
	"tonne tonnes ton tons tonnen tonelada toneladas":                                     {mass, 1e3, 0},
	"pound pounds":                           {mass, pound, 0},
	"ounce ounces":                           {mass, ounce, 0},
	"nanosecond nanoseconds":                 {Duration, 1e-9, 0},
	"microsecond microseconds":               {Duration, 1e-6, 0},
	"millisecond milliseconds millisekunden": {Duration, 1e-3, 0},
	"second seconds sekunde sekunden seconde secondes segundo segundos":               {Duration, 1, 0},
	"minute minutes minuten minuto minutos":                                           {Duration, minute, 0},
	"hour hours stunde stunden heure heures hora horas":                               {Duration, hour, 0},
	"day days tag tage tagen jour jours día días":                                     {Duration, day, 0},
	"week weeks woche wochen semaine semaines semana semanas":                         {Duration, 7 * day, 0},
	"fortnight fortnights":                                                            {Duration, 14 * day, 0},
	"month months monat monate monaten mois mes meses":                                {Duration, month, 0},
	"year years year-old years-old jahr jahre jahren an ans année années año años yo": {Duration, year, 0},
	"decade decades jahrzehnt jahrzehnte décennie décennies década décadas":           {Duration, 10 * year, 0},
	"century centuries jahrhundert jahrhunderte siècle siècles siglo siglos":          {Duration, 100 * year, 0},
	"millennium millennia":                                                            {Duration, 1000 * year, 0},
	"degree degrees grad degrés grados":                                               {degree, 1, 0},
	"celsius":                                                                         {temperature, 1, 273.15},
	"fahrenheit":                                                                      {temperature, 5.0 / 9, 459.67 * 5 / 9},
	"kelvin kelvins":                                                                  {temperature, 1, 0},
	"byte bytes":                                                                      {storage, 1, 0},
	"kilobyte kilobytes":                                                              {storage, 1e3, 0},
	"megabyte megabytes":                                                              {storage, 1e6, 0},
	"gigabyte gigabytes":                                                              {storage, 1e9, 0},
	"terabyte terabytes":                                                              {storage, 1e12, 0},
	"petabyte petabytes":                                                              {storage, 1e15, 0},
	"bit bits":                                                                        {storage, 0.125, 0},
	"megabit megabits":                                                                {storage, 125e3, 0},
	"gigabit gigabits":                                                                {storage, 125e6, 0},
	"joule joules":                                                                    {energy, 1, 0},
	"kilojoule kilojoules":                                                            {energy, 1e3, 0},
	"calorie calories kilocalorie kilocalories kalorien":                              {energy, 4184, 0},
	"kilowatt-hour kilowatt-hours kilowattstunden":                                    {energy, 3.6e6, 0},
	"watt watts":                                                                      {power, 1, 0},
	"kilowatt kilowatts":                                                              {power, 1e3, 0},
	"megawatt megawatts":                                                              {power, 1e6, 0},
	"gigawatt gigawatts":                                                              {power, 1e9, 0},
	"horsepower":                                                                      {power, 745.69987158227, 0},
	"pascal pascals":                                                                  {pressure, 1, 0},
	"atmosphere atmospheres":                                                          {pressure, 101325, 0},
	"hertz":                                                                           {frequency, 1, 0},
	"kilohertz":                                                                       {frequency, 1e3, 0},
	"megahertz":                                                                       {frequency, 1e6, 0},
	"gigahertz":                                                                       {frequency, 1e9, 0},
	"volt volts":                                                                      {voltage, 1, 0},
	"amp amps ampere amperes":                                                         {current, 1, 0},
	"newton newtons":                                                                  {force, 1, 0},
	"megapixel megapixels":                                                            {pixels, 1e6, 0},
	"pixel pixels":                                                                    {pixels, 1, 0},
	"times fold mal fois veces":                                                       {Multiple, 1, 0},
	"knot knots knoten":                                                               {length | Duration<<8, knot, 0},
	"dollar dollars dollarn dólares":                                                  {usd, 1, 0},
	"euro euros":                                                                      {eur, 1, 0},
	"sterling":                                                                        {gbp, 1, 0},
	"yen":                                                                             {jpy, 1, 0},
	"yuan renminbi":                                                                   {cny, 1, 0},
	"rupee rupees":                                                                    {inr, 1, 0},
	"francs franken":                                                                  {chf, 1, 0},
	"won":                                                                             {krw, 1, 0},
	"reais real":                                                                      {brl, 1, 0},
	"rubles roubles rubel":                                                            {rub, 1, 0},
	"peso pesos":                                                                      {mxn, 1, 0},
	"kronor krona":                                                                    {sek, 1, 0},
})

func names(groups map[string]unit) map[string]unit {
	m := make(map[string]unit, 4*len(groups))
	for group, u := range groups {
		for _, name := range fields(group) {
			m[name] = u
		}
	}
	return m
}

// powered is the unit of area (n = 2) or volume (n = 3) over a length.
func (u unit) powered(n int) (unit, bool) {
	switch {
	case u.dim != length:
		return u, false
	case n == 2:
		return unit{area, u.factor * u.factor, 0}, true
	default:
		return unit{volume, u.factor * u.factor * u.factor * 1000, 0}, true // litres
	}
}
