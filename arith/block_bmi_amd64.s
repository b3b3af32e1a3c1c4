//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// func hasBMI() bool
//
// CPUID leaf 7, register EBX: bit 3 is BMI1, bit 8 is BMI2. Leaf 1, ECX: bit 23 is
// POPCNT. Both sets work on the general registers, which every system saves.
TEXT ·hasBMI(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	XORL AX, AX
	CPUID
	CMPL AX, $7
	JLT  no
	MOVL $1, AX
	XORL CX, CX
	CPUID
	BTL  $23, CX
	JCC  no
	MOVL $7, AX
	XORL CX, CX
	CPUID
	ANDL $0x108, BX
	CMPL BX, $0x108
	JNE  no
	MOVB $1, ret+0(FP)
no:
	RET

// func popcountBMI(words *uint64, n int) uint64
TEXT ·popcountBMI(SB), NOSPLIT, $0-24
	MOVQ words+0(FP), SI
	MOVQ n+8(FP), CX
	XORL AX, AX
	XORL DX, DX
	XORL R8, R8
	XORL R9, R9
	SUBQ $4, CX
	JCS  tail
four:
	POPCNTQ (SI), R10
	POPCNTQ 8(SI), R11
	POPCNTQ 16(SI), R12
	POPCNTQ 24(SI), R13
	ADDQ R10, AX
	ADDQ R11, DX
	ADDQ R12, R8
	ADDQ R13, R9
	ADDQ $32, SI
	SUBQ $4, CX
	JCC  four
tail:
	ADDQ $4, CX
	JZ   done
one:
	POPCNTQ (SI), R10
	ADDQ R10, AX
	ADDQ $8, SI
	DECQ CX
	JNZ  one
done:
	ADDQ DX, AX
	ADDQ R8, R9
	ADDQ R9, AX
	MOVQ AX, ret+16(FP)
	RET

// WORD puts the places of the two lowest ones of the word BX, whose first bit is place
// R9, behind those found so far, and goes to MORE if there are more. Which of them
// there are shows in how many are counted: DX moves by R12.
#define WORD(MORE, BACK) \
	TZCNTQ  BX, R14    \
	BLSRQ   BX, R10    \
	ADDQ    R9, R14    \
	TZCNTQ  R10, R11   \
	MOVQ    R14, (DX)  \
	ADDQ    R9, R11    \
	POPCNTQ BX, R12    \
	MOVQ    R11, 8(DX) \
	CMPQ    R12, $2    \
	JHI     MORE       \
BACK:                      \
	LEAQ    (DX)(R12*8), DX

// MORE puts the places of the others.
#define MORE(REST, BACK) \
	MOVL   $2, R13         \
REST:                          \
	BLSRQ  R10, R10        \
	TZCNTQ R10, R11        \
	ADDQ   R9, R11         \
	MOVQ   R11, (DX)(R13*8) \
	INCQ   R13             \
	CMPQ   R13, R12        \
	JNE    REST            \
	JMP    BACK

#define ZERO(AT) \
	CMPQ AT(BX), $1 \
	ADCQ R8, R8

// func membersBMI(found *[gapWords * 64]uint64, words *uint64, n int, from uint64) int
//
// Of 64 words it first finds those that are not zero.
TEXT ·membersBMI(SB), NOSPLIT, $0-40
	MOVQ found+0(FP), DI
	MOVQ words+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ from+24(FP), AX
	MOVQ DI, DX
many:
	SUBQ $64, CX
	JCS  few
	LEAQ 448(SI), BX
	XORL R8, R8
eight:
	PREFETCHT0 -1024(BX) // of the batch below, which is next
	ZERO(56)
	ZERO(48)
	ZERO(40)
	ZERO(32)
	ZERO(24)
	ZERO(16)
	ZERO(8)
	ZERO(0)
	SUBQ $64, BX
	CMPQ BX, SI
	JCC  eight
	XORQ $-1, R8 // which sets the flags, unlike NOTQ
	JZ   empty
nonzero:
	TZCNTQ R8, R9
	BLSRQ  R8, R8
	MOVQ   (SI)(R9*8), BX
	SHLQ   $6, R9
	ADDQ   AX, R9
	WORD(more, back)
	TESTQ  R8, R8
	JNZ    nonzero
empty:
	ADDQ $512, SI
	ADDQ $4096, AX
	JMP  many
few:
	ADDQ $64, CX
	JZ   done
	MOVQ AX, R9
one:
	MOVQ (SI), BX
	WORD(more1, back1)
	ADDQ $8, SI
	ADDQ $64, R9
	DECQ CX
	JNZ  one
done:
	SUBQ DI, DX
	SHRQ $3, DX
	MOVQ DX, ret+32(FP)
	RET
more:
	MORE(rest, back)
more1:
	MORE(rest1, back1)
