package health

import "fmt"

// quorumNext is what to do without quorum.
const quorumNext = "start members until a quorum is alive; if they are lost for good: etcdkit snapshot restore --help"

// elsewhereNext is what to do where a quorum serves that cannot be seen.
const elsewhereNext = "linearizable reads are served, so the cluster has a quorum: name the endpoints of the other members with --endpoints, or run this from a host that reaches the URLs that they advertise"

// Voting is the arithmetic of a cluster's voters: how many there are and how
// many of them are alive.
type Voting struct {
	Voters int `json:"voters"`
	Alive  int `json:"alive"`
	Unseen int `json:"unseen"` // voters that did not answer from here; they count as not alive
}

// Quorum is how many voters must agree.
func (v Voting) Quorum() int { return v.Voters/2 + 1 }

// Serves reports whether enough voters are alive to serve.
func (v Voting) Serves() bool { return v.Voters > 0 && v.Alive >= v.Quorum() }

// CanLose is how many of the living voters may still fail.
func (v Voting) CanLose() int { return max(0, v.Alive-v.Quorum()) }

// Without is the voting after a voter was removed.
func (v Voting) Without(life Life) Voting {
	v.Voters--
	switch {
	case life.Alive:
		v.Alive--
	case !life.Seen:
		v.Unseen--
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
	unseen := ""
	if v.Unseen > 0 {
		unseen = fmt.Sprintf(" (%d not seen from here)", v.Unseen)
	}
	return fmt.Sprintf("%d of %d voters alive%s, quorum %d, can lose %d", v.Alive, v.Voters, unseen, v.Quorum(), v.CanLose())
}

// VotingOf counts the voters among members, each alive or not by its Life.
func VotingOf(members []Member) Voting {
	var v Voting
	for _, m := range members {
		if !m.Listed || m.Learner {
			continue
		}
		v.Voters++
		life := m.Life()
		if life.Alive {
			v.Alive++
		}
		if !life.Seen {
			v.Unseen++
		}
	}
	return v
}
