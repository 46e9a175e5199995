// Package cli is the command line: it parses flags, calls internal/app and prints. Output is
// coloured and tabular on a terminal, plain when piped.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"signalbox/internal/config"
)

// Streams is what a command reads from and writes to. Tests bring their own.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // Out is a terminal: colour and tables are welcome
	Asks     bool // In is a terminal as well: somebody is there to be asked
	Width    int  // columns of the terminal, 80 when unknown
	Env      func(string) (string, bool)
}

// System returns the process's own streams.
func System() Streams {
	s := Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv, Width: 80}
	fd := int(os.Stdout.Fd())
	if term.IsTerminal(fd) {
		s.Terminal, s.Asks = true, term.IsTerminal(int(os.Stdin.Fd()))
		if w, _, err := term.GetSize(fd); err == nil && w > 0 {
			s.Width = w
		}
	}
	return s
}

// errSilent carries an exit code of 1 for a command that has printed what is wrong itself.
var errSilent = errors.New("failed")

// command is what every subcommand shares.
type command struct {
	Streams
	version string
}

// Run is the program: it runs the command line of the process and returns the exit code. A first
// SIGINT or SIGTERM asks the command to stop, a second one ends the process at once.
func Run(version string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return Main(ctx, version, os.Args[1:], System())
}

// Main runs one command line and returns the exit code: 0 for success, 1 for failure, 2 for misuse.
// ctx ends when the process is asked to stop.
func Main(ctx context.Context, version string, args []string, s Streams) int {
	c := &command{Streams: s, version: version}
	root := &cobra.Command{
		Use:           "signalbox",
		Short:         "An OpenAI-compatible reverse proxy that picks the model for every request",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          onlyHelp,
	}
	root.SetHelpCommand(help())
	root.SetFlagErrorFunc(wrongFlag)
	// Groups of commands are runnable to say what is wrong; their usage is that of their commands.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(),
		"{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1))
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "Set up and run:"}, &cobra.Group{ID: groupAsk, Title: "Inspect and evaluate:"},
		&cobra.Group{ID: groupMore, Title: "Other:"},
	)
	root.SetHelpCommandGroupID(groupMore)
	root.SetCompletionCommandGroupID(groupMore)
	add(root, groupStart, c.demo(), c.init(), c.check(), c.doctor(), c.serve(), c.keys())
	add(root, groupAsk, c.explain(), c.eval(), c.fit(), c.replay(), c.report(), c.top())
	add(root, groupMore, c.models(), c.openapi(), c.schema(), c.simulate(), c.versionCmd())
	root.AddCommand(c.worker())
	refuseShells(root)
	err := root.ExecuteContext(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errSilent):
		return 1
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(s.Err, "signalbox: %v\n", err)
		return 2
	case config.IsInvalid(err):
		_, _ = fmt.Fprintln(s.Err, err)
		return 1
	}
	_, _ = fmt.Fprintf(s.Err, "signalbox: %v\n", err)
	return 1
}

// The groups that the help lists commands in.
const (
	groupStart = "start"
	groupAsk   = "ask"
	groupMore  = "more"
)

func add(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
	}
	root.AddCommand(commands...)
}

// refuseShells lets the command that writes scripts for shells refuse a shell that it does not know.
func refuseShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, onlyHelp
		}
	}
}

// onlyHelp runs a command that does nothing without one of its own commands.
func onlyHelp(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return noCommand(cmd, args[0])
	}
	return cmd.Help()
}

// help prints the help of the command that its arguments name.
func help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return noCommand(cmd.Root(), args[len(args)-1])
			case len(rest) > 0 && !target.HasAvailableSubCommands():
				return noCommand(cmd.Root(), rest[0])
			case len(rest) > 0:
				return noCommand(target, rest[0])
			}
			target.InitDefaultHelpFlag()
			return target.Help()
		},
	}
}

// noCommand says that the program, or a command of it, has no such command, and which one may have
// been meant.
func noCommand(of *cobra.Command, name string) error {
	var known []string
	for _, cmd := range of.Commands() {
		if cmd.IsAvailableCommand() {
			known = append(known, cmd.Name())
		}
	}
	near := meant(name, known)
	switch {
	case of.HasParent() && near != "":
		return misuse("%s has no command %q, did you mean %q? It has %s", of.Name(), name, near, listed(known))
	case of.HasParent():
		return misuse("%s has no command %q; it has %s", of.Name(), name, listed(known))
	case near != "":
		return misuse("there is no command %q, did you mean %q?", name, near)
	}
	return misuse("there is no command %q; `signalbox --help` lists them", name)
}

// meant is the known word that a word is the beginning of or a slip of; empty where there is none.
func meant(word string, known []string) string {
	for _, k := range known {
		if word != "" && strings.HasPrefix(k, word) {
			return k
		}
	}
	return config.Nearest(word, known)
}

// listed is a list of words as a sentence has it.
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// usageError is a command line that cannot be meant.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func misuse(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }
