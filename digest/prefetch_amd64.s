#include "textflag.h"

// func prefetchAt(address, bytes uintptr)
TEXT ·prefetchAt(SB), NOSPLIT, $0-16
	MOVQ address+0(FP), AX
	MOVQ bytes+8(FP), CX
	ADDQ AX, CX
	ANDQ $~63, AX
line:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	CMPQ AX, CX
	JB   line
	RET
