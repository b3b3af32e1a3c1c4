//go:build planted

package planted

import "os"

// Fault is the name of the fault that is switched on; "" = none.
var Fault = os.Getenv("PLANTED")
