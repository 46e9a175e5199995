// Package planted makes up fact sheets, and claims about them whose truth is known because they are
// made from the same values. True claims are reworded, reformatted, rounded, converted or worked
// out; false ones have a digit changed, a unit swapped, the value of another subject, or a wrong
// result.
//
// Names are invented, so that no model can know the values. It is for tests and measurements only.
package planted

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// Claim is one sentence about the facts of its sheet.
type Claim struct {
	Text string
	How  string // what was done to the number: rounded, swapped and others
	True bool
}

// Sheet is a handful of facts that belong together and claims about them.
type Sheet struct {
	Facts  []string
	Claims []Claim
}

// Sheets makes up one sheet of each kind: towers, firms and rivers. The same seed gives the same
// sheets.
func Sheets(seed uint64) []*Sheet {
	r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // nothing here is a secret
	return []*Sheet{towers(r), firms(r), rivers(r)}
}

func (s *Sheet) say(truth bool, how, format string, args ...any) {
	s.Claims = append(s.Claims, Claim{fmt.Sprintf(format, args...), how, truth})
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// group writes n with a separator between thousands.
func group(n int, sep string) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + sep + s[i:]
	}
	return s
}

// digit changes one of the first two digits of n, so that no rounding explains it.
func digit(r *rand.Rand, n int) int {
	s := []byte(fmt.Sprint(n))
	i := r.IntN(min(2, len(s)))
	for {
		d := byte('1' + r.IntN(9))
		diff := math.Abs(float64(int(d) - int(s[i])))
		if d != s[i] && (i > 0 && diff >= 3 || i == 0 && len(s) > 1 || diff > 1) {
			s[i] = d
			break
		}
	}
	out := 0
	for _, d := range s {
		out = 10*out + int(d-'0')
	}
	return out
}

// round keeps the first two digits of n.
func round(n int) int {
	p := int(math.Pow10(max(0, len(fmt.Sprint(n))-2)))
	return (n + p/2) / p * p
}

//nolint:gochecknoglobals // tables
var (
	towerNames = []string{"Karsten Tower", "Almira Spire", "Velder Mast", "Orrin Building", "Quell Needle", "Tamsin Tower"}
	firmNames  = []string{"Brixa", "Novarel", "Oltmann", "Perrique", "Sandovar", "Tullis"}
	riverNames = []string{"Aldra", "Benvoe", "Corrach", "Dessel", "Elmarn", "Fyrte"}
	cityNames  = []string{"Lisbon", "Oslo", "Turin", "Graz", "Porto", "Malmö", "Gdansk"}
	monthNames = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
)

// different draws n different numbers that no rounding confuses.
func different(r *rand.Rand, n, lo, hi int) []int {
	var out []int
	for len(out) < n {
		x := lo + r.IntN(hi-lo)
		ok := x%10 != 0
		for _, y := range out {
			ok = ok && math.Abs(float64(x-y)) > 0.12*float64(max(x, y)) && round(x) != round(y)
		}
		if ok {
			out = append(out, x)
		}
	}
	return out
}

func towers(r *rand.Rand) *Sheet {
	s := &Sheet{}
	names := append([]string(nil), towerNames...)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	height, year, floors := different(r, 3, 95, 830), []int{1861 + r.IntN(40), 1911 + r.IntN(40), 1961 + r.IntN(60)}, different(r, 3, 21, 160)
	for i := range 3 {
		s.Facts = append(s.Facts, pick(r,
			fmt.Sprintf("The %s is %d metres tall and was completed in %d. It has %d floors.", names[i], height[i], year[i], floors[i]),
			fmt.Sprintf("Completed in %d, the %s rises %d m. It has %d floors.", year[i], names[i], height[i], floors[i]),
			fmt.Sprintf("%s: height %d m; opened %d; floors %d.", names[i], height[i], year[i], floors[i])))
	}
	i := r.IntN(3)
	j := (i + 1 + r.IntN(2)) % 3
	h, feet := height[i], float64(height[i])/0.3048
	s.say(true, "reworded", "With a height of %d m, the %s stands out.", h, names[i])
	s.say(true, "rounded", "The %s is about %d metres high.", names[i], round(h))
	s.say(true, "bounded", "The %s is more than %d metres tall.", names[i], h/10*10)
	s.say(true, "converted", "The %s is %s feet tall.", names[i], group(int(math.Round(feet)), ","))
	s.say(true, "converted", "The %s rises roughly %d ft.", names[i], round(int(feet)))
	s.say(true, "converted", "The %s is %.2f km tall.", names[i], float64(h)/1000)
	s.say(true, "year", "It was in %d that the %s was completed.", year[i], names[i])
	s.say(true, "decade", "The %s dates from the %ds.", names[i], year[i]/10*10)
	s.say(true, "reworded", "There are %d floors in the %s.", floors[i], names[i])
	s.say(true, "difference", "The %s is %d m %s than the %s.", names[i], abs(h-height[j]), either(h > height[j], "taller", "shorter"), names[j])
	s.say(true, "years between", "The %s was completed %d years %s the %s.", names[i], abs(year[i]-year[j]), either(year[i] < year[j], "before", "after"), names[j])
	s.say(true, "sum", "Together the %s and the %s have %d floors.", names[i], names[j], floors[i]+floors[j])

	s.say(false, "digit", "The %s is %d metres tall.", names[i], digit(r, h))
	s.say(false, "digit, rounded", "The %s is about %d metres tall.", names[i], round(h)*pick(r, 14, 7)/10)
	s.say(false, "digit, converted", "The %s is %s feet tall.", names[i], group(digit(r, int(feet)), ","))
	s.say(false, "unit", "The %s is %d feet tall.", names[i], h)
	s.say(false, "swapped", "The %s is %d m tall.", names[i], height[j])
	s.say(false, "swapped", "The %s was completed in %d.", names[i], year[j])
	s.say(false, "year", "The %s was completed in %d.", names[i], year[i]+pick(r, -13, 7, 11, -21))
	s.say(false, "digit", "The %s has %d floors.", names[i], digit(r, floors[i]))
	s.say(false, "difference", "The %s is %d m taller than the %s.", names[i], abs(h-height[j])+pick(r, 37, 61), names[j])
	s.say(false, "years between", "The %s was completed %d years after the %s.", names[i], abs(year[i]-year[j])+pick(r, 3, 8), names[j])
	return s
}

func firms(r *rand.Rand) *Sheet {
	s := &Sheet{}
	name, other := firmNames[r.IntN(3)], firmNames[3+r.IntN(3)]
	rev, staff := different(r, 3, 112, 960), different(r, 2, 1200, 98000)
	founded := 1950 + r.IntN(60)
	day, month := 1+r.IntN(28), r.IntN(12)
	cities := append([]string(nil), cityNames...)
	r.Shuffle(len(cities), func(i, j int) { cities[i], cities[j] = cities[j], cities[i] })
	n := 3 + r.IntN(3)
	s.Facts = append(s.Facts,
		fmt.Sprintf("%s reported revenue of $%d million in 2022 and $%d million in 2023.", name, rev[0], rev[1]),
		fmt.Sprintf("%s had revenue of $%d million in 2023.", other, rev[2]),
		fmt.Sprintf("%s employs %s people. %s employs %s people.", name, group(staff[0], ","), other, group(staff[1], ",")),
		fmt.Sprintf("%s was founded on %d %s %d in %s.", name, day, monthNames[month], founded, cities[6]),
		fmt.Sprintf("%s has offices in %s and %s.", name, strings.Join(cities[:n-1], ", "), cities[n-1]))
	growth := 100 * math.Abs(float64(rev[1])/float64(rev[0])-1)
	verb := "grew"
	if rev[1] < rev[0] {
		verb = "fell"
	}
	s.say(true, "reworded", "In 2023, %s took in $%d million of revenue.", name, rev[1])
	s.say(true, "reformatted", "Revenue of %s in 2022 was %d,000,000 USD.", name, rev[0])
	s.say(true, "reformatted", "Revenue of %s was $%dM in 2022.", name, rev[0])
	s.say(true, "rounded", "Revenue of %s in 2023 was $%.2f billion.", name, float64(rev[1])/1000)
	s.say(true, "rounded", "%s has about %s employees.", name, group(round(staff[0]), ","))
	s.say(true, "rounded", "%s employs roughly %.1f thousand people.", name, float64(staff[0])/1000)
	s.say(true, "reformatted", "%s people work for %s.", group(staff[1], "\u202f"), other)
	s.say(true, "date", "%s was founded on %s %d, %d.", name, monthNames[month], day, founded)
	s.say(true, "date", "%s was founded on %04d-%02d-%02d.", name, founded, month+1, day)
	s.say(true, "date", "%s has existed since %s %d.", name, monthNames[month], founded)
	s.say(true, "growth", "Revenue of %s %s by %.0f %% from 2022 to 2023.", name, verb, growth)
	s.say(true, "difference", "Revenue of %s changed by $%d million between 2022 and 2023.", name, abs(rev[0]-rev[1]))
	s.say(true, "sum", "The two firms had combined revenue of $%d million in 2023.", rev[1]+rev[2])
	s.say(true, "count", "%s has %s offices.", name, pick(r, fmt.Sprint(n), []string{"three", "four", "five"}[n-3]))

	s.say(false, "digit", "Revenue of %s was $%d million in 2023.", name, digit(r, rev[1]))
	s.say(false, "unit", "Revenue of %s was $%d billion in 2023.", name, rev[1])
	s.say(false, "unit", "Revenue of %s was €%d million in 2023.", name, rev[1])
	s.say(false, "swapped", "Revenue of %s was $%d million in 2022.", name, rev[1])
	s.say(false, "swapped", "%s employs %s people.", name, group(staff[1], ","))
	s.say(false, "digit", "%s employs %s people.", name, group(digit(r, staff[0]), ","))
	s.say(false, "digit, rounded", "%s employs about %s people.", name, group(round(staff[0]*pick(r, 14, 7)/10), ","))
	s.say(false, "date", "%s was founded on %d %s %d.", name, day%28+1, monthNames[month], founded)
	s.say(false, "date", "%s was founded on %s %d, %d.", name, monthNames[(month+1+r.IntN(10))%12], day, founded)
	s.say(false, "growth", "Revenue of %s %s by %.0f %% from 2022 to 2023.", name, verb, growth+float64(pick(r, 9, 17)))
	s.say(false, "sum", "The two firms had combined revenue of $%d million in 2023.", rev[1]+rev[2]+pick(r, 19, 53))
	return s
}

func rivers(r *rand.Rand) *Sheet {
	s := &Sheet{}
	names := append([]string(nil), riverNames...)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	length, flow := different(r, 3, 101, 2900), different(r, 3, 13, 990)
	temp := []int{3 + r.IntN(5), 11 + r.IntN(5), 19 + r.IntN(5)}
	share := different(r, 3, 11, 88)
	for i := range 3 {
		line := fmt.Sprintf("The %s is %s km long, carries %d m³/s, is %d °C warm on average, and %d %% of its course is protected.", names[i], group(length[i], pick(r, ",", "")), flow[i], temp[i], share[i])
		s.Facts = append(s.Facts, line)
	}
	i := r.IntN(3)
	j := (i + 1 + r.IntN(2)) % 3
	miles, f := float64(length[i])/1.609344, float64(temp[i])*1.8+32
	s.say(true, "converted", "The %s flows for %.0f miles.", names[i], miles)
	s.say(true, "converted", "The mean temperature of the %s is %.0f °F.", names[i], f)
	s.say(true, "reformatted", "%d percent of the %s is protected.", share[i], names[i])
	s.say(true, "rounded", "The %s is around %s km long.", names[i], group(round(length[i]), ","))
	s.say(true, "bounded", "The %s is over %s km long.", names[i], group(length[i]/100*100, ","))
	s.say(true, "reworded", "The %s has a flow of %d cubic metres per second.", names[i], flow[i])
	s.say(true, "range", "The %s is between %d and %d km long.", names[i], length[i]-7, length[i]+20)
	s.say(true, "sum", "The three rivers have a total length of %d km.", length[0]+length[1]+length[2])
	big, small := i, j
	if flow[i] < flow[j] {
		big, small = j, i
	}
	s.say(true, "ratio", "The %s carries %.1f times as much water as the %s.", names[big], float64(flow[big])/float64(flow[small]), names[small])
	s.say(true, "German", "Der %s ist %s Kilometer lang.", names[i], group(length[i], "."))
	s.say(true, "list number", "%d. The %s is %d °C warm.", 1+r.IntN(9), names[i], temp[i])

	s.say(false, "digit, converted", "The %s flows for %d miles.", names[i], digit(r, int(miles)))
	s.say(false, "unit", "The %s is %d miles long.", names[i], length[i])
	s.say(false, "unit", "The %s is %d °F warm on average.", names[i], temp[i])
	s.say(false, "swapped", "The %s is %d km long.", names[i], length[j])
	s.say(false, "swapped", "The %s carries %d m³/s.", names[i], flow[j])
	s.say(false, "digit", "%d %% of the %s is protected.", digit(r, share[i]), names[i])
	s.say(false, "sum", "The three rivers have a total length of %d km.", length[0]+length[1]+length[2]+pick(r, 31, 113))
	s.say(false, "range", "The %s is between %d and %d km long.", names[i], length[i]*15/10, length[i]*15/10+40)
	return s
}

func either(is bool, yes, no string) string { //nolint:revive // picks a word
	if is {
		return yes
	}
	return no
}

func abs(n int) int { return max(n, -n) }
