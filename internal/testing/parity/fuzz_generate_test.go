//go:build !windows

package parity_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/etcdkit/etcdkit/internal/testing/parity"
)

// A generator makes random command lines from shapes. Equal seeds make equal
// lines.
type generator struct {
	random *rand.Rand
	shapes []string
	pools  map[string][]string
	copies []string // database files, one for each line that reads one
	folder int      // how many names of new folders were given
}

// newGenerator makes lines of these kinds of shapes.
func newGenerator(seed uint64, kinds ...string) *generator {
	g := &generator{random: rand.New(rand.NewPCG(seed, seed)), pools: pools()}
	all := shapes()
	for _, kind := range kinds {
		if len(all[kind]) == 0 {
			panic("no shapes of kind " + kind)
		}
		g.shapes = append(g.shapes, all[kind]...)
	}
	return g
}

func (g *generator) chance(percent int) bool { return g.random.IntN(100) < percent }

func (g *generator) lines(n int) []parity.Line {
	all := make([]parity.Line, n)
	for i := range all {
		all[i] = g.line()
	}
	return all
}

func (g *generator) line() parity.Line {
	line := parity.L(g.fill(pick(g.random, g.shapes)))
	if g.chance(20) && !slices.Contains(line.Args, "lock") { // without its command it runs on
		line.Args = g.damage(line.Args)
	}
	if len(line.Args) > 1 && line.Args[1] == "txn" {
		line.Stdin = pick(g.random, txnInputs())
	}
	if slices.Contains(line.Args, "grant") {
		line.Capture, line.CaptureBy = "granted", `lease ([0-9a-f]{15,16}) granted`
	}
	line.Sorted = slices.Contains(line.Args, "health") || slices.Contains(line.Args, "list")
	return line
}

func pick[T any](random *rand.Rand, all []T) T { return all[random.IntN(len(all))] }

// fill makes every choice of a shape, the innermost first.
func (g *generator) fill(shape string) string {
	choices := regexp.MustCompile(`\[[^\[\]<>]*\]|<[^\[\]<>]*\|[^\[\]<>]*>`)
	for {
		shape = g.replacePools(shape)
		at := choices.FindStringIndex(shape)
		if at == nil {
			return shape
		}
		inner, with := shape[at[0]+1:at[1]-1], ""
		if shape[at[0]] == '<' {
			with = pick(g.random, strings.Split(inner, "|"))
		} else if g.chance(50) {
			with = inner
		}
		shape = shape[:at[0]] + with + shape[at[1]:]
	}
}

// replacePools replaces the words that stand for others, and leaves those that
// parity.Line replaces.
func (g *generator) replacePools(shape string) string {
	for {
		if strings.Contains(shape, "{db}") {
			shape = strings.Replace(shape, "{db}", g.database(), 1)
			continue
		}
		if strings.Contains(shape, "{new}") {
			g.folder++
			shape = strings.Replace(shape, "{new}", fmt.Sprintf("new%d", g.folder), 1)
			continue
		}
		found := ""
		for _, name := range slices.Sorted(maps.Keys(g.pools)) {
			if strings.Contains(shape, "{"+name+"}") {
				found = name
				break
			}
		}
		if found == "" {
			return shape
		}
		shape = strings.Replace(shape, "{"+found+"}", pick(g.random, g.pools[found]), 1)
	}
}

// database returns a file that no other line reads: upstream's hashkv changes
// what it reads.
func (g *generator) database() string {
	name := fmt.Sprintf("%d-%s", len(g.copies), pick(g.random, databases()))
	g.copies = append(g.copies, name)
	return name
}

// damage makes one mistake of those that people make: a word too few, too many,
// in another place, shortened or misspelt.
func (g *generator) damage(args []string) []string {
	args = slices.Clone(args)
	at := 1 + g.random.IntN(len(args))
	if at == len(args) {
		return append(args, pick(g.random, []string{"x", "", "--bogus", "-w", "-w=json", "--help", "--endpoints={ep1}"}))
	}
	word := args[at]
	switch g.random.IntN(5) {
	case 0:
		return slices.Delete(args, at, at+1)
	case 1:
		return slices.Insert(args, at, word)
	case 2:
		other := 1 + g.random.IntN(len(args)-1)
		args[at], args[other] = args[other], args[at]
	case 3:
		if len(word) > 1 && !strings.Contains(word, "{") {
			args[at] = word[:1+g.random.IntN(len(word)-1)]
		}
	default:
		args[at] = word + "x"
	}
	return args
}
