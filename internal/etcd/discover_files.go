package etcd

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxConfigBytes bounds the files that discovery reads.
const maxConfigBytes = 1 << 20

func (t tree) read(name string) ([]byte, error) {
	f, err := t.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxConfigBytes))
}

// podFlags returns the flags that a static pod's container of that name, or
// the one that runs that program, was started with.
func (t tree) podFlags(name, program string) (map[string]string, error) {
	raw, err := t.read(name)
	if err != nil {
		return nil, err
	}
	flags, err := parsePod(raw, program)
	if err != nil {
		return nil, fmt.Errorf("read /%s: %w", name, err)
	}
	return flags, nil
}

// pod is the part of a Pod that is looked at.
type pod struct {
	Spec struct {
		Containers []struct {
			Name    string   `json:"name"`
			Command []string `json:"command"`
			Args    []string `json:"args"`
		} `json:"containers"`
	} `json:"spec"`
}

func parsePod(raw []byte, program string) (map[string]string, error) {
	var p pod
	if err := yaml.Unmarshal(raw, &p); err != nil {
		return nil, err
	}
	for _, c := range p.Spec.Containers {
		words := append(c.Command, c.Args...)
		if c.Name == program || len(c.Command) > 0 && path.Base(c.Command[0]) == program {
			return parseFlags(words), nil
		}
	}
	return nil, fmt.Errorf("no container runs %s: %w", program, fs.ErrNotExist)
}

// parseFlags reads --name=value and --name value. A word that is neither is
// skipped, as a shell's would be that starts the program.
func parseFlags(words []string) map[string]string {
	flags := map[string]string{}
	for i := 0; i < len(words); i++ {
		flag, ok := strings.CutPrefix(words[i], "--")
		if !ok {
			continue
		}
		name, value, inline := strings.Cut(flag, "=")
		if !inline && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			i++
			value = words[i]
		}
		flags[name] = value
	}
	return flags
}

// environment is the layout of an etcd that a service manager starts with a
// file of variables: kubespray's and the distributions' packages'. The file may
// hold variables for etcdctl too, which know best how clients connect.
func (t tree) environment(name string) (Found, error) {
	raw, err := t.read(name)
	if err != nil {
		return Found{}, err
	}
	vars := parseEnvironment(raw)
	value := func(names ...string) string {
		for _, n := range names {
			if vars[n] != "" {
				return vars[n]
			}
		}
		return ""
	}
	found := Found{
		DataDir: vars["ETCD_DATA_DIR"],
		TLS: TLS{
			CACert: value("ETCDCTL_CACERT", "ETCDCTL_CA_FILE", "ETCD_TRUSTED_CA_FILE"),
			Cert:   value("ETCDCTL_CERT", "ETCDCTL_CERT_FILE", "ETCD_CERT_FILE"),
			Key:    value("ETCDCTL_KEY", "ETCDCTL_KEY_FILE", "ETCD_KEY_FILE"),
		},
		Endpoints: local(vars["ETCD_LISTEN_CLIENT_URLS"], vars["ETCD_ADVERTISE_CLIENT_URLS"]),
	}
	if eps := vars["ETCDCTL_ENDPOINTS"]; eps != "" {
		found.Endpoints = strings.Split(eps, ",")
	}
	if len(found.Endpoints) == 0 {
		return Found{}, fs.ErrNotExist // a package's file in which everything is commented out
	}
	for _, file := range []string{found.TLS.CACert, found.TLS.Cert, found.TLS.Key} {
		if file == "" {
			continue
		}
		if err := t.readable(strings.TrimPrefix(file, "/")); err != nil {
			return found, fmt.Errorf("named in /%s: %w", name, visible(err))
		}
	}
	return found, t.fromAPIServer(&found)
}

// visible makes a missing file an error of its own: one that is named must be
// there.
func visible(err error) error {
	return fmt.Errorf("%v", err) //nolint:errorlint // it must not count as "nothing found"
}

// parseEnvironment reads NAME=value lines as systemd and shells do.
func parseEnvironment(raw []byte) map[string]string {
	vars := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, maxConfigBytes)
	for lines.Scan() {
		line := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export "))
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		value = strings.TrimSpace(value)
		if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		vars[strings.TrimSpace(name)] = value
	}
	return vars
}
