package digest

// Inside returns what other packages of this module need of a set beside its other methods. It is promised to nobody.
func (s *Set) Inside() inside { s.shared(); return inside{s} }

// inside is a [Set] with the methods that plan and rebuild it (set_rebuild.go), that continue what it published
// (follow.go), and that say how well it is planned (stats.go).
type inside struct{ *Set }
