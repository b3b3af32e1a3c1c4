//go:build !linux

package sd

// Slacken does nothing: only Linux lets threads sleep longer than they ask for.
func Slacken() {}
