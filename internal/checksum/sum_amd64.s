//go:build !purego

#include "textflag.h"

// func sumWide(b []byte) uint64
//
// RFC 1071 §2(C): words of 32 bits sum to the same as words of 16, once folded, and several may be
// added side by side. A register of 256 bits has four lanes of 64, each of which takes two words at
// a time, x = high·2^32 + low. Masking one half and shifting the other would be two operations
// before the two additions; it takes one less to keep
//
//	S = Σ x     modulo 2^64, its carries lost
//	H = Σ high  exact: x shifted by 32
//
// for then Σ low = S - H·2^32 modulo 2^64, which is exact as well, since it is less than 2^64.
// What is wanted is Σ low + Σ high.
//
// Y0 and Y2 are S, Y1 and Y3 are H: twice, because an addition waits for the one before it.
TEXT ·sumWide(SB), NOSPLIT, $0-32
	MOVQ  b_base+0(FP), SI
	MOVQ  b_len+8(FP), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	SUBQ  $128, CX
	JLT   rest

four:
	VMOVDQU (SI), Y4
	VMOVDQU 32(SI), Y5
	VMOVDQU 64(SI), Y6
	VMOVDQU 96(SI), Y7
	VPADDQ  Y4, Y0, Y0
	VPADDQ  Y5, Y2, Y2
	VPSRLQ  $32, Y4, Y4
	VPSRLQ  $32, Y5, Y5
	VPADDQ  Y4, Y1, Y1
	VPADDQ  Y5, Y3, Y3
	VPADDQ  Y6, Y0, Y0
	VPADDQ  Y7, Y2, Y2
	VPSRLQ  $32, Y6, Y6
	VPSRLQ  $32, Y7, Y7
	VPADDQ  Y6, Y1, Y1
	VPADDQ  Y7, Y3, Y3
	ADDQ    $128, SI
	SUBQ    $128, CX
	JGE     four

rest:
	ADDQ $96, CX // what is left, less 32
	JLT  lanes

one:
	VMOVDQU (SI), Y4
	VPADDQ  Y4, Y0, Y0
	VPSRLQ  $32, Y4, Y4
	VPADDQ  Y4, Y1, Y1
	ADDQ    $32, SI
	SUBQ    $32, CX
	JGE     one

lanes:
	VPADDQ       Y2, Y0, Y0
	VPADDQ       Y3, Y1, Y1
	VPSLLQ       $32, Y1, Y2
	VPSUBQ       Y2, Y0, Y0 // Σ low
	VPADDQ       Y1, Y0, Y0 // and Σ high
	VEXTRACTI128 $1, Y0, X1
	VPADDQ       X1, X0, X0
	VPSHUFD      $0xee, X0, X1
	VPADDQ       X1, X0, X0
	VMOVQ        X0, AX
	VZEROUPPER
	MOVQ         AX, ret+24(FP)
	RET
