package config

import (
	"os"
	"strings"
)

// TakeArgs returns the arguments of this process, and takes the secrets among
// them out of the process list, where every user of the machine could read
// them, as far as the system allows.
func TakeArgs() []string {
	args := make([]string, len(os.Args))
	for i, arg := range os.Args {
		args[i] = strings.Clone(arg) // os.Args is the very memory that the list shows
	}
	for _, s := range secrets(args) {
		overwrite(os.Args[s.arg][s.from:])
	}
	return args
}

// secret is a part of the command line that nobody else should read.
type secret struct{ arg, from int }

// secrets finds passwords, tokens and URLs that may hold them: values of flags,
// the part after the colon of a user's name, and that of "user add
// NAME:PASSWORD". The command is not parsed yet, so a flag's value may be taken
// for a word of the command: what follows "user" and "add" is hidden wherever it
// has a colon. Hiding too much does no harm, because only the process list changes.
func secrets(args []string) []secret {
	var found []secret
	var words userAdd
	onlyWords := false // after --
	for i := 1; i < len(args); i++ {
		flag, value, joined := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		switch {
		case onlyWords, !strings.HasPrefix(args[i], "-"):
			if words.complete() {
				found = append(found, afterColon(args[i], 0, i)...)
			}
			words.see(args[i])
		case args[i] == "--":
			onlyWords = true
		case !Secret(flag):
		case joined:
			found = append(found, secretValue(flag, value, len(args[i])-len(value), i)...)
		case i+1 < len(args):
			i++
			found = append(found, secretValue(flag, args[i], 0, i)...)
		}
	}
	return found
}

func secretValue(flag, value string, from, arg int) []secret {
	switch {
	case strings.HasSuffix(flag, "user"):
		return afterColon(value, from, arg)
	case secretURL(flag) && isReference(value):
		return nil
	}
	return []secret{{arg, from}}
}

func afterColon(text string, from, arg int) []secret {
	if i := strings.IndexByte(text, ':'); i >= 0 {
		return []secret{{arg, from + i + 1}}
	}
	return nil
}

// userAdd recognises the words "user" and "add", perhaps abbreviated, with
// anything before, between and after them.
type userAdd struct{ user, add bool }

func (u *userAdd) see(word string) {
	u.add = u.add || u.user && strings.HasPrefix("add", word)
	u.user = u.user || strings.HasPrefix("user", word)
}

func (u *userAdd) complete() bool { return u.add }
