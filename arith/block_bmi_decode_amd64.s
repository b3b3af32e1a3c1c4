//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// The registers of the decoders:
//
//	SI  bytes, of which bit AX is the next
//	DI  *decodeTable
//	R8  *blockTables
//	R10 the state whose turn it is, R11 the other one
//	DX  where the next word goes, CX how many are still to come

// LOAD loads the bitReader, the first argument, which is in R12 then.
#define LOAD \
	MOVQ r+0(FP), R12             \
	MOVQ bitReader_src(R12), SI   \
	MOVQ bitReader_at(R12), AX    \
	MOVQ bitReader_next(R12), R10 \
	MOVQ bitReader_last(R12), R11

// SAVE is the reverse.
#define SAVE \
	MOVQ r+0(FP), R12             \
	MOVQ AX, bitReader_at(R12)    \
	MOVQ R10, bitReader_next(R12) \
	MOVQ R11, bitReader_last(R12)

// WORDS loads what read16BMI and read32BMI are given.
#define WORDS \
	MOVQ words+8(FP), DX   \
	MOVQ n+16(FP), CX      \
	MOVQ t+24(FP), DI      \
	MOVQ tables+32(FP), R8 \
	LOAD

// ENOUGH goes to DONE unless there are sixteen bytes from the next one on, in the chunk
// of the bitReader in R12: a window here, and one that begins up to eight bytes behind.
// R9 is lost.
#define ENOUGH(DONE) \
	MOVQ AX, R9                     \
	SHRQ $3, R9                     \
	ADDQ $16, R9                    \
	CMPQ R9, (bitReader_src+8)(R12) \
	JHI  DONE

// WINDOW loads the next 56 bits or more to BX. R9 is lost.
#define WINDOW \
	MOVQ  AX, R9            \
	SHRQ  $3, R9            \
	MOVQ  (SI)(R9*1), BX    \
	MOVL  AX, R9            \
	ANDL  $7, R9            \
	SHRXQ R9, BX, BX

// SYMBOL takes a symbol's step from state S and leaves the value in R13. The bits in BX
// are not gone: how many were taken is in R15. R9, R12 and R14 are lost.
#define SYMBOL(S) \
	MOVBLZX decodeTable_raw(DI)(S*1), R9    \
	MOVBLZX decodeTable_sym(DI)(S*1), R14   \
	MOVBLZX decodeTable_shed(DI)(S*1), R12  \
	MOVBLZX decodeTable_taken(DI)(S*1), R15 \
	MOVWLZX decodeTable_next(DI)(S*2), S    \
	BZHIQ   R9, BX, R13                     \
	SHRXQ   R9, BX, R9                      \
	ADDQ    decodeTable_base(DI)(R14*8), R13 \
	BZHIQ   R12, R9, R9                     \
	ADDQ    R9, S

// UNRANK16 stores the block of the rank in R13. An escaped one is counted at ESCAPE.
#define UNRANK16(AT, ESCAPE, BACK) \
	CMPQ R13, $0xffff \
	JHI  ESCAPE       \
BACK:                 \
	MOVWLZX blockTables_unrank16(R8)(R13*2), R9 \
	MOVW R9, AT(DX)

// ESCAPED counts the escaped block in R13, and leaves its rank there.
#define ESCAPED(BACK) \
	MOVWLZX R13, R13    \
	INCQ escaped+48(FP) \
	JMP  BACK

// UNRANK32 stores the block of the rank in R13, unless it has more than four ones: MANY
// notes it.
#define UNRANK32(AT, MANY, BACK) \
	CMPQ R13, $const_quick32 \
	JCC  MANY                \
	MOVL blockTables_unrank32(R8)(R13*4), R9 \
	MOVL R9, AT(DX)          \
BACK:

// NOTE notes the decoded value in R13: HALF is 0 for the low block of the word, or 1.
#define NOTE(HALF, BACK) \
	MOVQ n+16(FP), R9       \
	SUBQ CX, R9             \
	LEAQ HALF(R9)(R9*1), R9 \
	SHLQ $8, R13            \
	ORQ  R9, R13            \
	MOVQ many+40(FP), R12   \
	MOVQ noted+56(FP), R9   \
	MOVQ R13, (R12)(R9*8)   \
	INCQ noted+56(FP)       \
	JMP  BACK

// func read16BMI(r *bitReader, words *uint64, n int, t *decodeTable, tables *blockTables) (left, escaped int)
TEXT ·read16BMI(SB), NOSPLIT, $0-56
	WORDS
	MOVQ $0, escaped+48(FP)
loop:
	// Two blocks take at most 56 bits, after which the second window begins.
	ENOUGH(done)
	WINDOW
	SYMBOL(R10)
	UNRANK16(0, escape0, back0)
	SHRXQ R15, BX, BX
	ADDQ R15, AX
	SYMBOL(R11)
	UNRANK16(2, escape1, back1)
	ADDQ R15, AX
	WINDOW
	SYMBOL(R10)
	UNRANK16(4, escape2, back2)
	SHRXQ R15, BX, BX
	ADDQ R15, AX
	SYMBOL(R11)
	UNRANK16(6, escape3, back3)
	ADDQ R15, AX
	MOVQ r+0(FP), R12
	ADDQ $8, DX
	DECQ CX
	JNZ  loop
done:
	MOVQ CX, left+40(FP)
	SAVE
	RET
escape0:
	ESCAPED(back0)
escape1:
	ESCAPED(back1)
escape2:
	ESCAPED(back2)
escape3:
	ESCAPED(back3)

// func read32BMI(r *bitReader, words *uint64, n int, t *decodeTable, tables *blockTables, many *[batch]uint64) (left, noted int)
TEXT ·read32BMI(SB), NOSPLIT, $0-64
	WORDS
	MOVQ $0, noted+56(FP)
loop:
	// A block takes at most 56 bits.
	ENOUGH(done)
	WINDOW
	SYMBOL(R10)
	ADDQ R15, AX
	UNRANK32(0, many0, back0)
	WINDOW
	SYMBOL(R11)
	ADDQ R15, AX
	UNRANK32(4, many1, back1)
	MOVQ r+0(FP), R12
	ADDQ $8, DX
	DECQ CX
	JNZ  loop
done:
	MOVQ CX, left+48(FP)
	SAVE
	RET
many0:
	NOTE(0, back0)
many1:
	NOTE(1, back1)

// GAP decodes a gap from state S and adds it to R12, the member before. The bits in BX
// are used up but for the shed ones. R9, R14 and R15 are lost.
#define GAP(S) \
	BZHIQ   R13, BX, R9                    \
	ADDQ    decodeTable_step(DI)(S*8), R12 \
	MOVBLZX decodeTable_shed(DI)(S*1), R14 \
	MOVWLZX decodeTable_next(DI)(S*2), S   \
	SHRXQ   R13, BX, BX                    \
	ADDQ    R9, R12                        \
	BZHIQ   R14, BX, R15                   \
	ADDQ    R14, AX                        \
	ADDQ    R15, S

// func decodeGapsBMI(r *bitReader, out *uint64, pairs int, t *decodeTable, place uint64) (left int)
TEXT ·decodeGapsBMI(SB), NOSPLIT, $0-48
	LOAD
	MOVQ (bitReader_src+8)(R12), R8
	MOVQ out+8(FP), DX
	MOVQ pairs+16(FP), CX
	MOVQ t+24(FP), DI
	SUBQ $8, R8
	JCS  done // fewer than eight bytes
	MOVQ place+32(FP), R12
	DECQ R12
	MOVQ decodeTable_each(DI), R13
loop:
	MOVQ AX, R9
	SHRQ $3, R9
	CMPQ R9, R8
	JHI  done
	MOVQ decodeTable_step(DI)(R10*8), R9
	ORQ  decodeTable_step(DI)(R11*8), R9
	JLT  done // a jump
	WINDOW
	GAP(R10)
	MOVQ R12, (DX)
	SHRXQ R14, BX, BX
	GAP(R11)
	MOVQ R12, 8(DX)
	LEAQ (AX)(R13*2), AX
	ADDQ $16, DX
	DECQ CX
	JNZ  loop
done:
	MOVQ CX, left+40(FP)
	SAVE
	RET

// func insertBMI(words, members *uint64, n int)
TEXT ·insertBMI(SB), NOSPLIT, $0-24
	MOVQ words+0(FP), DI
	MOVQ members+8(FP), SI
	MOVQ n+16(FP), CX
	MOVL $1, AX
	LEAQ (SI)(CX*8), SI
	NEGQ CX
	JZ   none
loop:
	MOVQ  (SI)(CX*8), R9
	SHLXQ R9, AX, R12
	SHRQ  $6, R9
	ORQ   R12, (DI)(R9*8)
	INCQ  CX
	JNZ   loop
none:
	RET
