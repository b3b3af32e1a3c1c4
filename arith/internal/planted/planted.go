//go:build !planted

// Package planted has the switch of the faults that are planted in the code, for tests that must
// find them. Programs are built without the tag planted, and so without the faults. cmd/peer/FAULTS.md
// lists them.
package planted

// Fault is the name of the fault that is switched on. Without the tag it is a constant, so that
// the compiler leaves all faults out.
const Fault = ""
