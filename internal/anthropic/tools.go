package anthropic

// tools translates the definitions of tools that the client runs.
func (t *translator) tools(b *top) error {
	if b.tools == nil || string(b.tools) == "[]" {
		return nil
	}
	out := []byte{'['}
	err := elements(b.tools, "tools", func(at string, v []byte) error {
		if err := t.count(); err != nil {
			return err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		var err error
		out, err = t.tool(out, v, at)
		return err
	})
	if err == nil {
		t.member("tools", append(out, ']'))
	}
	return err
}

func (t *translator) tool(out, raw []byte, at string) ([]byte, error) {
	kind, named := "custom", false
	var schema []byte
	out = append(out, `{"type":"function","function":{`...)
	err := members(raw, at, func(name string, v []byte) (err error) {
		in := join(at, name)
		switch name {
		case "type":
			kind, err = word(v, in)
		case "name":
			named = true
			if _, err = text(v, in); err == nil {
				out = appendMember(out, name, v)
			}
		case "description":
			if _, err = text(v, in); err == nil {
				out = appendMember(out, name, v)
			}
		case "input_schema":
			if v[0] != '{' {
				return bad(in, "must be an object")
			}
			schema = v
		case "strict":
			if _, err = flag(v, in); err == nil {
				out = appendMember(out, name, v)
			}
		case "cache_control":
			t.cacheControl(v, "tools.cache_control")
		default:
			t.unknown("tools", name)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case kind != "custom":
		return nil, bad(join(at, "type"), "%.100q is a tool that Anthropic's servers run or know "+
			"the schema of; tools here have type custom and an input_schema", kind)
	case !named:
		return nil, bad(join(at, "name"), "is required")
	case schema == nil:
		return nil, bad(join(at, "input_schema"), "is required")
	}
	return append(appendMember(out, "parameters", schema), "}}"...), nil
}

// toolChoice translates which tools may or must be called.
func (t *translator) toolChoice(b *top) error {
	if b.choice == nil {
		return nil
	}
	const at = "tool_choice"
	var kind string
	var name []byte
	serial := false
	err := members(b.choice, at, func(member string, v []byte) (err error) {
		switch member {
		case "type":
			kind, err = word(v, join(at, member))
		case "name":
			_, err = text(v, join(at, member))
			name = v
		case "disable_parallel_tool_use":
			serial, err = flag(v, join(at, member))
		default:
			t.unknown(at, member)
		}
		return err
	})
	if err != nil {
		return err
	}
	switch kind {
	case "auto", "none":
		t.member(at, []byte(`"`+kind+`"`))
	case "any":
		t.member(at, []byte(`"required"`))
	case "tool":
		if name == nil {
			return bad("tool_choice.name", "is required")
		}
		v := append([]byte(`{"type":"function","function":{"name":`), name...)
		t.member(at, append(v, "}}"...))
	default:
		return bad("tool_choice.type", "must be one of auto, any, tool, none")
	}
	if name != nil && kind != "tool" {
		t.leaveOut("tool_choice.name")
	}
	if serial {
		t.member("parallel_tool_calls", []byte("false"))
	}
	return nil
}
