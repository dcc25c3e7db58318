package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// strictDecoder is viper's decoder of the configuration file. It fills in file
// and gives viper nothing to interpret: viper would put names into lower case
// and drop what has an unexpected shape.
type strictDecoder struct{ file *File }

// Decoder returns the decoder itself for every format.
func (d strictDecoder) Decoder(string) (viper.Decoder, error) { return d, nil }

// Decode fills in the file. Anything that is not understood is an error, with
// its line.
func (d strictDecoder) Decode(raw []byte, _ map[string]any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil // comments alone
	} else if err != nil {
		return yamlError(err)
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		return at(second.Line, errors.New("a second YAML document begins; the file may hold one"))
	} else if !errors.Is(err, io.EOF) {
		return yamlError(err)
	}
	return d.file.decode(&document)
}

func (f *File) decode(document *yaml.Node) error {
	fields, err := mapping(document.Content[0], "the file")
	if err != nil {
		return err
	}
	for _, field := range fields {
		switch field.name {
		case "context":
			f.Current, err = text(field.value, "context")
		case "contexts":
			err = f.decodeContexts(field.value)
		case "repositories":
			err = f.decodeRepositories(field.value)
		default:
			keys := []string{"context", "contexts", "repositories"}
			err = hint.With(at(field.line(), fmt.Errorf("unknown key %q", field.name)), "%s",
				Suggestion(field.name, keys, "the keys are context, contexts and repositories"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *File) decodeContexts(node *yaml.Node) error {
	if isNull(node) {
		return nil
	}
	contexts, err := mapping(node, "contexts")
	if err != nil {
		return err
	}
	for _, c := range contexts {
		settings, err := mapping(c.value, "context "+c.name)
		if err != nil {
			return err
		}
		context := Context{}
		for _, s := range settings {
			if context[s.name], err = setting(s.value, "context "+c.name+": "+s.name); err != nil {
				return err
			}
		}
		if err := f.checkContext(c.name, context); err != nil {
			return err
		}
		if !context.namesCluster() {
			return hint.With(at(c.line(), fmt.Errorf("context %s does not say where its cluster is", c.name)), "add endpoints: [https://10.0.0.1:2379]")
		}
		f.Contexts[c.name] = context
	}
	return nil
}

func (f *File) decodeRepositories(node *yaml.Node) error {
	if isNull(node) {
		return nil
	}
	repositories, err := mapping(node, "repositories")
	if err != nil {
		return err
	}
	for _, r := range repositories {
		name := "repository " + r.name
		settings, err := mapping(r.value, name)
		if err != nil {
			return err
		}
		repository := Repository{Settings: map[string]FileSetting{}, Line: r.line()}
		for _, s := range settings {
			if s.name == "url" {
				if repository.URL, err = text(s.value, name+": url"); err != nil {
					return err
				}
				continue
			}
			flag, ok := repositoryFlags()[s.name]
			if !ok {
				return unknownRepositoryKey(name, s)
			}
			if repository.Settings[flag], err = setting(s.value, name+": "+s.name); err != nil {
				return err
			}
		}
		if repository.URL == "" {
			return at(repository.Line, fmt.Errorf("%s has no url", name))
		}
		f.Repositories[r.name] = repository
	}
	return nil
}

// field is an entry of a mapping.
type field struct {
	name  string
	value *yaml.Node
}

func (f field) line() int { return f.value.Line }

// mapping returns the entries of a mapping in the order of the file.
func mapping(node *yaml.Node, what string) ([]field, error) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		return nil, at(node.Line, fmt.Errorf("%s: want a mapping of names to values, got %s", what, kindOf(node)))
	}
	entries := map[string]yaml.Node{}
	if err := node.Decode(&entries); err != nil { // merges << and refuses duplicates
		return nil, yamlError(err)
	}
	var fields []field
	for name, value := range entries {
		if value.Kind == yaml.AliasNode {
			value = *value.Alias
		}
		fields = append(fields, field{name, &value})
	}
	slices.SortFunc(fields, func(a, b field) int {
		return cmp.Or(cmp.Compare(a.line(), b.line()), cmp.Compare(a.value.Column, b.value.Column), strings.Compare(a.name, b.name))
	})
	return fields, nil
}

// setting returns a value, or a list of values.
func setting(node *yaml.Node, what string) (FileSetting, error) {
	if node.Kind != yaml.SequenceNode {
		value, err := text(node, what)
		return FileSetting{Values: []string{value}, Line: node.Line}, err
	}
	s := FileSetting{List: true, Line: node.Line}
	for _, item := range node.Content {
		value, err := text(item, what)
		if err != nil {
			return s, err
		}
		s.Values = append(s.Values, value)
	}
	if len(s.Values) == 0 {
		return s, at(node.Line, fmt.Errorf("%s is an empty list", what))
	}
	return s, nil
}

// text returns a value that is not empty.
func text(node *yaml.Node, what string) (string, error) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch {
	case node.Kind != yaml.ScalarNode:
		return "", at(node.Line, fmt.Errorf("%s: want one value, got %s", what, kindOf(node)))
	case isNull(node), strings.TrimSpace(node.Value) == "":
		return "", at(node.Line, fmt.Errorf("%s has no value", what))
	}
	return node.Value, nil
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

func kindOf(node *yaml.Node) string {
	switch {
	case isNull(node):
		return "nothing"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	}
	return "a single value"
}

// at says on which line of the file an error is.
func at(line int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("line %d: %w", line, err)
}

// yamlError is an error of the YAML library on one line. The library names
// lines, and quotes no values.
func yamlError(err error) error {
	if types, ok := errors.AsType[*yaml.TypeError](err); ok {
		return errors.New(strings.Join(types.Errors, "; "))
	}
	return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
}
