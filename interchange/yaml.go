package interchange

import "github.com/goccy/go-yaml"

// fields builds a mapping from keys and values, in this order.
func fields(pairs ...any) yaml.MapSlice {
	var m yaml.MapSlice
	for i := 0; i < len(pairs); i += 2 {
		m = append(m, yaml.MapItem{Key: pairs[i], Value: pairs[i+1]})
	}
	return m
}

func documents(about string, values ...any) ([]byte, error) {
	text := []byte("# " + about + "\n")
	for i, v := range values {
		part, err := yaml.MarshalWithOptions(v, yaml.Indent(2), yaml.IndentSequence(true),
			yaml.UseLiteralStyleIfMultiline(true))
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, "---\n"...)
		}
		text = append(text, part...)
	}
	return text, nil
}
