package config

import "testing"

func TestASlipIsOneLetter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"staff", "stafff", true},
		{"staff", "staf", true},
		{"staff", "stabf", true},
		{"staff", "tsaff", true},
		{"staff", "stfaf", true},
		{"admni", "admin", true},
		{"xstaff", "staff", true},
		{"staff", "staff", false},
		{"team-a", "team-b", false},
		{"team-north", "team-south", false},
		{"team1", "team2x", false},
		{"teams1", "team1", false},
		{"dev", "devs", false},
		{"staff", "taffs", false},
	} {
		if slip(c.a, c.b) != c.want || slip(c.b, c.a) != c.want {
			t.Errorf("%s and %s: want %t", c.a, c.b, c.want)
		}
	}
}

// A list of ten thousand virtual keys is held against a thousand tenants.
func TestLookingForSlipsAllocatesNothing(t *testing.T) {
	one, two := "customers-of-the-north-in-production", "customers-of-the-south-in-production"
	if n := testing.AllocsPerRun(10, func() { slip(one, two) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
