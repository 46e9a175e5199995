package cli

import (
	"strings"
	"testing"
)

func TestAWrongValueOfAFlagIsToldWithoutWordsOfTheProgram(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"simulate --max-model-len x":  `--max-model-len takes an integer, found "x"`,
		"simulate --seats 1.5":        `--max-num-seqs takes an integer, found "1.5"`,
		"simulate --kv-blocks=":       `--num-gpu-blocks-override takes an integer, found ""`,
		"simulate --max-num-seqs 1e3": `--max-num-seqs takes an integer, found "1e3"`,
		"simulate --seed -1":          `--seed takes a non-negative integer, found "-1"`,
		"simulate --record 9" + nines: `--record 9` + nines + ` is out of range`,
		"simulate --ttft 5":           `--ttft takes a duration, such as 300ms or 5s, found "5"`,
		"doctor --json=maybe":         `--json takes true or false, found "maybe"`,
		"simulate --max-model-len": "flag needs an argument: --max-model-len; `signalbox simulate --help` lists " +
			"its flags",
		"simulate --model m --seats=-1": "simulate: --max-num-seqs: -1 is less than 0",
		"simulate --model m --kv-blocks 8": "simulate: --max-model-len: 32768 tokens do not fit into the 128 " +
			"of the prefix cache (--num-gpu-blocks-override of --block-size)",
	} {
		code, out, problems := run(t, "", strings.Fields(line)...)
		if code != 2 || out != "" || problems != "signalbox: "+want+"\n" {
			t.Errorf("%s: exit code %d, %s%s", line, code, problems, out)
		}
	}
}

// nines make a number that no integer holds.
const nines = "99999999999999999999"
