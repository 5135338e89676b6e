//go:build !purego

#include "textflag.h"

// func sumWide(b []byte) uint64
//
// RFC 1071 §2(C): sums of 32-bit words and of 16-bit words are the same once folded, and vector
// lanes can be summed in parallel. A 256-bit register has four 64-bit lanes, each of which takes two
// words at a time, x = high·2^32 + low. Masking one half and shifting the other would take two
// operations before the two additions. This takes one less:
//
//	S = Σ x     modulo 2^64, without its carries
//	H = Σ high  exact: x shifted right by 32
//
// Then Σ low = S - H·2^32 modulo 2^64, which is exact too, since it is less than 2^64.
// The result is Σ low + Σ high.
//
// Y0 and Y2 hold S, Y1 and Y3 hold H: two of each, because an addition waits for the one before it.
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
	ADDQ $96, CX // the bytes left, less 32
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
