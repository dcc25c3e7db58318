package config

import (
	"fmt"
	"strings"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
)

// Reference returns the secret that text stands for: the contents of a file
// (file:PATH), the value of a variable (env:NAME), or text itself. The newline
// at the end of a file does not count.
func Reference(text string, env *cli.Env) (string, error) {
	if path, ok := strings.CutPrefix(text, "file:"); ok {
		b, err := env.ReadFile(path, cli.MaxSecretFile)
		if err != nil {
			return "", fmt.Errorf("read secret: %w", err)
		}
		return strings.TrimRight(string(b), "\r\n"), nil
	}
	if name, ok := strings.CutPrefix(text, "env:"); ok {
		value := env.Getenv(name)
		if value == "" {
			return "", hint.With(fmt.Errorf("read secret: variable %s is not set", name), "export %s, or name a file with file:PATH", name)
		}
		return value, nil
	}
	return text, nil
}
