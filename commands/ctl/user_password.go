package ctl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// newPassword is where a user's new password comes from.
type newPassword struct {
	interactive bool
	flag        string // of user add
	none        bool   // of user add
	file        string // natively
}

// bindFile keeps a password out of the process list.
func (p *newPassword) bindFile(t *tree, cmd *cobra.Command) {
	if !t.upstream() {
		cmd.Flags().StringVar(&p.file, "new-user-password-file", "", "file that holds the new password; - is standard input, /dev/fd/3 a descriptor")
	}
}

const userAddHelp = `Adds a user. The password is asked for twice on the terminal, or comes from a file
(--new-user-password-file, where - is standard input and /dev/fd/N a descriptor).
As name:password or --new-user-password it can be seen in the shell's history and
was in the process list for a moment.

  etcdkit user add alice
  etcdkit user add backup --new-user-password-file /run/secrets/etcd-backup

Exit codes: 0 added, 1 failed, 2 wrong usage.`

func newUserAddCmd(t *tree) *cobra.Command {
	var p newPassword
	cmd := &cobra.Command{
		Use: "add <user name or user:password> [options]", Short: "Adds a new user", Long: t.long("", userAddHelp),
		RunE: t.run(func(ctx context.Context, args []string) error { return runUserAdd(ctx, t, args, p) }),
	}
	cmd.Flags().BoolVar(&p.interactive, "interactive", true, "Read password from stdin instead of interactive terminal")
	cmd.Flags().StringVar(&p.flag, "new-user-password", "", "Supply password from the command line flag")
	cmd.Flags().BoolVar(&p.none, "no-password", false, "Create a user without password (CN based auth only)")
	p.bindFile(t, cmd)
	return t.offer(cmd, output.Fields, output.Protobuf)
}

func runUserAdd(ctx context.Context, t *tree, args []string, p newPassword) error {
	if len(args) != 1 {
		return badArgs("user add command requires user name as its argument")
	}
	user, password, err := p.forNewUser(t, args[0])
	if err != nil {
		return err
	}
	return t.unbounded(ctx, func(ctx context.Context, client *clientv3.Client) error {
		r, err := client.UserAddWithOptions(ctx, user, password, &clientv3.UserAddOptions{NoPassword: p.none})
		if err != nil {
			return err
		}
		return t.print(t.doneResult((*pb.AuthUserAddResponse)(r), fmt.Sprintf("User %s created", user)))
	})
}

// forNewUser returns the name and the password that arg and the flags give.
func (p newPassword) forNewUser(t *tree, arg string) (user, password string, err error) {
	switch {
	case p.none:
		return arg, "", nil
	case p.flag != "":
		return arg, p.flag, nil
	}
	user, password, given := strings.Cut(arg, ":")
	switch {
	case !given:
		password, err = p.read(t, arg)
	case user == "":
		err = badArgs("empty user name is not allowed")
	}
	return user, password, err
}

func newUserPasswdCmd(t *tree) *cobra.Command {
	var p newPassword
	cmd := &cobra.Command{
		Use: "passwd <user name> [options]", Short: "Changes password of user",
		Long: t.long("", `Changes a user's password, which is asked for twice on the terminal or comes from a
file (--new-user-password-file, where - is standard input).

  etcdkit user passwd alice

Exit codes: 0 changed, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error { return runUserPasswd(ctx, t, args, p) }),
	}
	cmd.Flags().BoolVar(&p.interactive, "interactive", true, "If true, read password from stdin instead of interactive terminal")
	p.bindFile(t, cmd)
	return t.offer(cmd, output.Fields, output.Protobuf)
}

func runUserPasswd(ctx context.Context, t *tree, args []string, p newPassword) error {
	if len(args) != 1 {
		return badArgs("user passwd command requires user name as its argument")
	}
	password, err := p.read(t, args[0])
	if err != nil {
		return err
	}
	return t.unbounded(ctx, func(ctx context.Context, client *clientv3.Client) error {
		r, err := client.UserChangePassword(ctx, args[0], password)
		if err != nil {
			return err
		}
		return t.print(t.doneResult((*pb.AuthUserChangePasswordResponse)(r), "Password updated"))
	})
}

// read takes the password from the file, the terminal or standard input.
func (p newPassword) read(t *tree, user string) (string, error) {
	if err := t.passwordFirst(); err != nil {
		return "", err
	}
	switch {
	case p.file == "-":
		return firstLine(t.Input())
	case p.file != "":
		raw, err := t.ReadFile(p.file, cli.MaxSecretFile)
		if err != nil {
			return "", cli.Usage(fmt.Errorf("--new-user-password-file: %w", err))
		}
		return firstLine(bytes.NewReader(raw))
	case p.interactive:
		return askTwice(t, user)
	case t.upstream():
		var word string
		_, _ = fmt.Fscanf(t.In, "%s", &word) // upstream takes what is there, nothing too
		return word, nil
	}
	return firstLine(t.Input())
}

func firstLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the new password: %w", err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", cli.Usagef("the new password is empty")
	}
	return line, nil
}

func askTwice(t *tree, user string) (string, error) {
	ask := t.PromptPassword
	if !t.upstream() {
		ask = t.AskPassword
	}
	first, err := ask(fmt.Sprintf("Password of %s: ", user))
	if errors.Is(err, cli.ErrNoTerminal) {
		return "", cli.Usage(hint.With(err, "give the new password with --new-user-password-file"))
	}
	if err != nil {
		return "", badArgs("failed to ask password: %w", err)
	}
	if first == "" {
		return "", badArgs("empty password")
	}
	second, err := ask(fmt.Sprintf("Type password of %s again for confirmation: ", user))
	if err != nil {
		return "", badArgs("failed to ask password: %w", err)
	}
	if first != second {
		return "", badArgs("given passwords are different")
	}
	return first, nil
}
