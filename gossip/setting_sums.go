package gossip

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/insider"
)

// settingSums has the sums of this peer's settings by the hashes of their names.
type settingSums struct {
	names map[uint32]string
	sums  map[uint32]uint16
	sent  string // as they travel
}

// sumsOfSettings makes the sums that travel: of the names with the lowest hashes if there are too many, so that two peers
// choose the same.
func sumsOfSettings(settings map[string]uint64) *settingSums {
	a := &settingSums{names: make(map[uint32]string), sums: make(map[uint32]uint16)}
	for name, sum := range settings {
		h := uint32(digest.KeyOfString(0, name))
		a.names[h], a.sums[h] = name, uint16(sum)
	}
	var b []byte
	for i, h := range slices.Sorted(maps.Keys(a.sums)) {
		if i < exchange.MaxSettings {
			b = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint32(b, h), a.sums[h])
		}
	}
	a.sent = string(b)
	return a
}

// differing returns the names whose sums differ from those of another peer.
func (a *settingSums) differing(theirs string) (names []string) {
	for b := []byte(theirs); len(b) >= exchange.SettingBytes; b = b[exchange.SettingBytes:] {
		h := binary.LittleEndian.Uint32(b)
		if own, ok := a.sums[h]; ok && own != binary.LittleEndian.Uint16(b[4:]) {
			names = append(names, a.names[h])
		}
	}
	slices.Sort(names)
	return names
}

// SetSettings replaces [Advanced.Settings] of a running node.
func (n inside) SetSettings(settings map[string]uint64) {
	fresh := sumsOfSettings(settings)
	if n.made().settings.Swap(fresh).sent == fresh.sent || !n.inLoop(n.sumSelf) {
		return
	}
	n.updateMetadata()
	for _, m := range n.liveMembers() {
		n.logDifferentSettings(m)
	}
}

// SettingsDiffer returns the live members whose settings are unlike this one's, by name.
func (n inside) SettingsDiffer() (all []insider.SettingsDiffer) {
	own := n.made().settings.Load()
	for _, m := range n.liveMembers() {
		if names := own.differing(m.info.Load().meta.Settings); names != nil {
			all = append(all, insider.SettingsDiffer{Member: m.name, Names: names})
		}
	}
	slices.SortFunc(all, func(a, b insider.SettingsDiffer) int { return cmp.Compare(a.Member, b.Member) })
	return all
}

func (g *group) logDifferentSettings(m *member) {
	if names := g.settings.Load().differing(m.info.Load().meta.Settings); names != nil {
		g.log.Warn("a peer has other settings for what this one has, too: their answers may differ", "member",
			m.name, "of", names)
	}
}
