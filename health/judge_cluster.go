package health

// tolerance says what a cluster of two voters is easily taken for: redundant.
func (j *judge) tolerance() {
	if v := VotingOf(j.facts.Members); v.Voters == 2 && v.Alive == 2 {
		j.find(Info, "", KindQuorum, "add a third member: etcdkit member add NAME --peer-urls URL",
			"2 voters tolerate 0 failures: a quorum of 2 needs both")
	}
}

// downgrade shows a downgrade that is enabled: the cluster accepts members of
// an older version until it is cancelled.
func (j *judge) downgrade() {
	for _, m := range j.facts.Members {
		if m.Status != nil && m.Status.DowngradeTarget != "" {
			j.find(Info, "", KindVersion, "finish it on every member, or: etcdkit downgrade cancel",
				"a downgrade to %s is enabled", m.Status.DowngradeTarget)
			return
		}
	}
}
