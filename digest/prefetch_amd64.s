#include "textflag.h"

// func prefetchAt(address uintptr)
TEXT ·prefetchAt(SB), NOSPLIT, $0-8
	MOVQ address+0(FP), AX
	PREFETCHT0 (AX)
	RET
