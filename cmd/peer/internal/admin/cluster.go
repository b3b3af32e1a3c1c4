package admin

// A Plan says what this peer's digest is made for, and what is expected of it.
type Plan struct {
	Objects           uint64  `json:"objects"`
	Peers             int     `json:"peers"`               // alive, this one included
	Churn             float64 `json:"churn_per_second"`    // objects stored, over the last hour at most
	FalsePositiveRate float64 `json:"false_positive_rate"` // of one digest, holding Objects
	FalseCandidates   float64 `json:"false_candidates"`    // per lookup, of all peers
	DigestBytes       float64 `json:"digest_bytes"`        // of a snapshot
	UpdateBytes       float64 `json:"update_bytes"`
	BytesPerSecond    float64 `json:"bytes_per_second"` // received from all others
	MemoryBytes       float64 `json:"memory_bytes"`     // for the digests of all others
	// Binding is the setting that keeps the digest from being better, and Note
	// says in a sentence whether the plan still fits.
	Binding string `json:"binding"`
	Note    string `json:"note"`
}

// A ClusterRow is what one peer of the cluster says of those that it asked.
type ClusterRow struct {
	Peer  string       `json:"peer"`
	Error string       `json:"error"` // why the peer says nothing; "" = it did
	Asked []ClusterAsk `json:"asked"`
}

// A ClusterAsk counts the questions of one peer to another.
type ClusterAsk struct {
	Peer      string `json:"peer"`
	Hits      int64  `json:"hits"`
	FalseHits int64  `json:"false_hits"`
	Failures  int64  `json:"failures"`
}

// RowOf is the row that a status makes.
func RowOf(s Status) ClusterRow {
	r := ClusterRow{Peer: s.Name, Asked: []ClusterAsk{}}
	for _, m := range s.Members {
		r.Asked = append(r.Asked, ClusterAsk{m.Name, m.Hits, m.FalseHits, m.Failures})
	}
	return r
}
