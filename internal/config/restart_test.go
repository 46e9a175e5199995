package config_test

import (
	"reflect"
	"slices"
	"testing"

	"signalbox/internal/config"
)

// F1: what a reload cannot change keeps its value and is named, and everything else changes and is
// not: for each setting of the file that is a single value.
func TestF1AReloadChangesASettingOrNamesIt(t *testing.T) {
	t.Parallel()
	const text = "models: [{name: m, endpoints: [{name: a, url: 'http://127.0.0.1:1/v1'}]}]\ndefault: {models: [m]}\n"
	parse := func() *config.Config {
		c, _, err := config.Parse("f.yaml", []byte(text), noEnv, catalog)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	old := parse()
	named, free := 0, 0
	for _, at := range leaves(reflect.ValueOf(*old), nil, 0) {
		next := parse()
		v := reflect.ValueOf(next).Elem().FieldByIndex(at)
		before := reflect.ValueOf(old).Elem().FieldByIndex(at).Interface()
		change(v)
		after := v.Interface()
		if reflect.DeepEqual(before, after) {
			t.Fatalf("%v did not change", at)
		}
		told := old.RestartNeeded(next)
		next.KeepRestartOnly(old)
		switch now := v.Interface(); {
		case len(told) > 1:
			t.Errorf("%s: a change of one setting names %v", name(at), told)
		case len(told) == 1 && !reflect.DeepEqual(now, before):
			t.Errorf("%s needs a restart, and is %v", told[0], now)
		case len(told) == 0 && !reflect.DeepEqual(now, after):
			t.Errorf("%s keeps its value, and nobody is told", name(at))
		case len(told) == 1:
			named++
		default:
			free++
		}
	}
	if named < 30 || free < 30 {
		t.Errorf("%d settings need a restart, %d do not", named, free)
	}
}

// leaves lists the settings that are single values, in structs of sections.
func leaves(v reflect.Value, at []int, depth int) (out [][]int) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if tag := f.Tag.Get("yaml"); !f.IsExported() || tag == "-" || tag == "" || depth == 0 && !section(tag) {
			continue
		}
		here := append(append([]int(nil), at...), i)
		if f.Type.Kind() == reflect.Struct {
			out = append(out, leaves(v.Field(i), here, depth+1)...)
		} else if slices.Contains([]reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64}, f.Type.Kind()) {
			out = append(out, here)
		}
	}
	return out
}

// section reports whether a key of the file is a section of settings.
func section(key string) bool {
	switch key {
	case "server", "auth", "limits", "classify", "guard", "cache", "memory", "telemetry":
		return true
	}
	return false
}

func change(v reflect.Value) {
	switch {
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "x")
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.CanFloat():
		v.SetFloat(v.Float() + 1)
	default:
		v.SetInt(v.Int() + 1)
	}
}

func name(at []int) string {
	t := reflect.TypeFor[config.Config]()
	out := ""
	for _, i := range at {
		f := t.Field(i)
		out += "." + f.Name
		t = f.Type
	}
	return out
}
