package health

import "fmt"

// quorumNext is what to do without quorum.
const quorumNext = "start members until a quorum is alive; if they are lost for good: etcdkit snapshot restore --help"

// Voting is the arithmetic of a cluster's voters: how many there are and how
// many of them answer.
type Voting struct {
	Voters int `json:"voters"`
	Alive  int `json:"alive"`
}

// Quorum is how many voters must agree.
func (v Voting) Quorum() int { return v.Voters/2 + 1 }

// Serves reports whether enough voters are alive to serve.
func (v Voting) Serves() bool { return v.Voters > 0 && v.Alive >= v.Quorum() }

// CanLose is how many of the living voters may still fail.
func (v Voting) CanLose() int { return max(0, v.Alive-v.Quorum()) }

// Without is the voting after a voter was removed.
func (v Voting) Without(alive bool) Voting {
	v.Voters--
	if alive {
		v.Alive--
	}
	return v
}

// With is the voting after a voter was added, which is not alive before it
// has been started.
func (v Voting) With(alive bool) Voting {
	v.Voters++
	if alive {
		v.Alive++
	}
	return v
}

func (v Voting) String() string {
	return fmt.Sprintf("%d of %d voters alive, quorum %d, can lose %d", v.Alive, v.Voters, v.Quorum(), v.CanLose())
}

// VotingOf counts the voters among members. A member without an answer is
// not alive.
func VotingOf(members []Member) Voting {
	var v Voting
	for _, m := range members {
		if !m.Listed || m.Learner {
			continue
		}
		v.Voters++
		if m.Reachable {
			v.Alive++
		}
	}
	return v
}
