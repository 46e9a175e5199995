package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// wrongFlag says what is wrong with a flag of a command line.
func wrongFlag(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 { // no flag of this one
		return noCommand(cmd, words[0])
	}
	if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
		if text := wrongValue(wrong); text != "" {
			return misuse("%s", text)
		}
	}
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		if near := meantFlag(cmd, unknown); near != "" {
			return misuse("%v, did you mean --%s?", err, near)
		}
	}
	return misuse("%v; `%s --help` lists its flags", err, cmd.CommandPath())
}

// meantFlag is the flag of a command that an unknown one is a slip of; empty where there is none.
func meantFlag(cmd *cobra.Command, e *pflag.NotExistError) string {
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	letters, _, _ := strings.Cut(e.GetSpecifiedShortnames(), "=")
	switch {
	case letters == "":
		return meant(e.GetSpecifiedName(), known)
	case slices.Contains(known, letters): // with one dash too few
		return letters
	}
	return ""
}

// wrongValue says what a flag takes, and what was found; nothing where its own words are as good.
func wrongValue(e *pflag.InvalidValueError) string {
	flag := e.GetFlag()
	takes := map[string]string{
		"bool":     "true or false",
		"duration": "a duration, such as 300ms or 5s",
		"float64":  "a number",
		"int":      "an integer",
		"uint64":   "a non-negative integer",
	}[flag.Value.Type()]
	switch {
	case takes == "":
		return ""
	case errors.Is(e, strconv.ErrRange):
		return fmt.Sprintf("--%s %s is out of range", flag.Name, e.GetValue())
	}
	return fmt.Sprintf("--%s takes %s, found %q", flag.Name, takes, e.GetValue())
}
