//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// The registers of the encoders:
//
//	AX  bits, of which the low BX are still to be stored
//	DX  where the next eight bytes would be stored
//	DI  *encodeTable
//	R10 the state whose turn it is, R11 the other one

// LOAD loads the bitPacker, the first argument. R12 is lost.
#define LOAD \
	MOVQ p+0(FP), R12             \
	MOVQ bitPacker_dst(R12), DX   \
	ADDQ bitPacker_at(R12), DX    \
	MOVQ bitPacker_acc(R12), AX   \
	MOVQ bitPacker_n(R12), BX     \
	MOVQ bitPacker_next(R12), R10 \
	MOVQ bitPacker_last(R12), R11

// SAVE is the reverse.
#define SAVE \
	MOVQ p+0(FP), R12             \
	SUBQ bitPacker_dst(R12), DX   \
	MOVQ DX, bitPacker_at(R12)    \
	MOVQ AX, bitPacker_acc(R12)   \
	MOVQ BX, bitPacker_n(R12)     \
	MOVQ R10, bitPacker_next(R12) \
	MOVQ R11, bitPacker_last(R12)

// WORDS loads what words16BMI and words32BMI are given: SI is the last of CX words,
// and R8 *blockTables.
#define WORDS \
	LOAD                   \
	MOVQ words+8(FP), SI   \
	MOVQ n+16(FP), CX      \
	MOVQ t+24(FP), DI      \
	MOVQ tables+32(FP), R8 \
	LEAQ -8(SI)(CX*8), SI

// SHED finds how many bits, R15, state S sheds for the symbol whose ordinal is in R14.
#define SHED(S) \
	MOVQ encodeTable_shed(DI)(R14*8), R15 \
	ADDQ S, R15                           \
	SHRQ $16, R15

// STEP takes the symbol's step from state S, behind SHED: its raw bits are in R13, and
// how many these are in RAW. It leaves all of the symbol's bits in R13, how many in R15,
// and the next state in S. R12 is lost.
#define STEP(S, RAW) \
	SHRXQ R15, S, R12                      \
	BZHIQ R15, S, S                        \
	ADDQ  encodeTable_turn(DI)(R14*8), R12 \
	SHLXQ RAW, S, S                        \
	ADDQ  RAW, R15                         \
	ORQ   S, R13                           \
	MOVWLZX encodeTable_next(DI)(R12*2), S

// BLOCK is SHED and STEP for the block whose rank is in R13, counted from where the
// bases are. R9 is lost, too.
#define BLOCK(S) \
	SUBQ encodeTable_base(DI)(R14*8), R13 \
	SHED(S)                               \
	MOVQ encodeTable_raw(DI)(R14*8), R9   \
	STEP(S, R9)

// PUT puts the R15 bits in R13 before all bits so far.
#define PUT \
	SHLXQ R15, AX, AX \
	ADDQ  R15, BX     \
	ORQ   R13, AX

// STORE stores the whole bytes of what is still to be stored. R9 and R12 are lost.
#define STORE \
	MOVQ  BX, R9      \
	NEGQ  R9          \
	SHLXQ R9, AX, R12 \
	MOVQ  BX, R9      \
	MOVQ  R12, (DX)   \
	ANDL  $7, BX      \
	SHRQ  $3, R9      \
	SUBQ  R9, DX

// ROOM stores if there is no room for those bits beside what is still to be stored,
// which is seldom.
#define ROOM(AFTER) \
	LEAQ (BX)(R15*1), R9 \
	CMPQ R9, $64         \
	JLS  AFTER           \
	STORE                \
AFTER:                   \
	PUT

// BLOCK16 is BLOCK for the block of 16 bits at AT.
#define BLOCK16(AT, S) \
	MOVWLZX AT(SI), R12                           \
	MOVBLZX blockTables_ordinal16(R8)(R12*1), R14 \
	MOVWLZX blockTables_place16(R8)(R12*2), R13   \
	BLOCK(S)

// func words16BMI(p *bitPacker, words *uint64, n int, t *encodeTable, tables *blockTables)
TEXT ·words16BMI(SB), NOSPLIT, $0-40
	WORDS
loop:
	BLOCK16(6, R10)
	PUT
	BLOCK16(4, R11)
	PUT
	STORE
	BLOCK16(2, R10)
	PUT
	BLOCK16(0, R11)
	PUT
	STORE
	SUBQ $8, SI
	DECQ CX
	JNZ  loop
	SAVE
	RET

// BLOCK32 is BLOCK16 for the block of 32 bits at AT. Blocks with more than four ones
// are looked up at MANY, which comes back to BACK.
#define BLOCK32(AT, S, MANY, BACK) \
	MOVWLZX AT(SI), R12                          \
	MOVWLZX (AT+2)(SI), R9                       \
	MOVWLZX blockTables_place16(R8)(R12*2), R13  \
	MOVWLZX blockTables_place16(R8)(R9*2), R15   \
	POPCNTL R12, R12                             \
	POPCNTL R9, R9                               \
	SHLL    $5, R12                              \
	ADDL    R9, R12                              \
	IMULQ   blockTables_high32(R8)(R12*8), R13   \
	ADDQ    blockTables_cell32(R8)(R12*8), R15   \
	ADDQ    R15, R13                             \
	CMPQ    R13, $const_quick32                  \
	JCC     MANY                                 \
	MOVBLZX blockTables_ordinal32(R8)(R13*1), R14 \
BACK:                                            \
	BLOCK(S)

// ORDINAL32 finds the ordinal of the group of the block of 32 bits at AT, whose rank is
// in R13, as slowOrdinal32 does. R9, R12 and R15 are lost.
#define ORDINAL32(AT, BACK) \
	POPCNTL AT(SI), R12 \
	MOVQ    (blockTables_first32+8)(R8)(R12*8), R9 \
	MOVQ    blockTables_first32(R8)(R12*8), R15 \
	SUBQ    R15, R9        \ // how many there are with as many ones
	MOVQ    R13, R14       \
	SUBQ    R15, R14       \
	XORQ    R9, R14        \
	BSRQ    R14, R14       \
	INCQ    R14            \
	SHRXQ   R14, R9, R9    \
	POPCNTQ R9, R9         \
	MOVWLZX blockTables_firstOrd32(R8)(R12*2), R14 \
	ADDQ    R9, R14        \
	MOVL    $(const_maxSymbols-1), R9 \
	CMPQ    R14, R9        \
	CMOVQHI R9, R14        \
	JMP     BACK

// func words32BMI(p *bitPacker, words *uint64, n int, t *encodeTable, tables *blockTables)
TEXT ·words32BMI(SB), NOSPLIT, $0-40
	WORDS
loop:
	BLOCK32(4, R10, many4, found4)
	PUT
	BLOCK32(0, R11, many0, found0)
	ROOM(stored)
	STORE
	SUBQ $8, SI
	DECQ CX
	JNZ  loop
	SAVE
	RET
many4:
	ORDINAL32(4, found4)
many0:
	ORDINAL32(0, found0)

// CODE is SHED and STEP for the gap in GAP, whose class is in R14. R8 is raw.
#define CODE(GAP, S) \
	SHED(S)             \
	BZHIQ R8, GAP, R13  \
	STEP(S, R8)

// func encodeGapsBMI(p *bitPacker, last *uint64, pairs int, t *encodeTable, raw, jump uint64) (left int)
TEXT ·encodeGapsBMI(SB), NOSPLIT, $0-56
	LOAD
	MOVQ last+8(FP), SI
	MOVQ pairs+16(FP), CX
	MOVQ t+24(FP), DI
	MOVQ raw+32(FP), R8
loop:
	MOVQ  (SI), R13
	MOVQ  -8(SI), R9
	SUBQ  R9, R13
	SUBQ  -16(SI), R9
	DECQ  R13
	DECQ  R9
	SHRXQ R8, R9, R12
	CMPQ  R12, jump+40(FP)
	JCC   done
	SHRXQ R8, R13, R14
	CMPQ  R14, jump+40(FP)
	JCC   done
	CODE(R13, R10)
	PUT
	SHRXQ R8, R9, R14
	CODE(R9, R11)
	PUT
	STORE
	SUBQ $16, SI
	DECQ CX
	JNZ  loop
done:
	MOVQ CX, left+48(FP)
	SAVE
	RET
