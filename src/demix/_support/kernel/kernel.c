/* Log-sum-exp over all pairs of queries and keys without the matrix (pairs.inc), and residual layers
 * (layers.inc), with their gradients.
 *
 * They are compiled once for each floating type, with the vector extensions that gcc and clang share,
 * so the same source serves every processor.
 */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define PASTE(...) PASTE_NOW(__VA_ARGS__)
#define PASTE_NOW(a, b, c) a##b##c
#if defined(__AVX512F__)
#define BYTES 64
#define EXTREME(which, suffix, a, b) PASTE(_mm512_, which, suffix)(a, b)
#elif defined(__AVX__)
#define BYTES 32
#define EXTREME(which, suffix, a, b) PASTE(_mm256_, which, suffix)(a, b)
#else
#define BYTES 16
#endif

/* Keep a vector in a register: gcc would rather load it again for every use. */
#if defined(__x86_64__)
#define KEEP(v) __asm__("" : "+x"(v))
#else
#define KEEP(v)
#endif

/* Tiles of few queries, whose sums and coordinates fit into the registers, and of so many keys that
 * their coordinates and gradients fit into the first cache. */
#define ROWS 4
#define COLUMNS 256
/* Tiles of matrix products, which fit into the second cache. Both sides are multiples of STRIP and
 * of two vectors; rows lie PITCH apart, since powers of two would fight for the same cache lines. */
#define TALL 96
#define WIDE 192
#define PITCH (WIDE + 16)
#define STRIP 6   /* rows of a product whose sums fit into the registers, two vectors each */
#define DEPTH 256 /* terms of a product that one strip takes at a time, from the first cache */
/* Coordinates from which on a dot product is a matrix product. Below, the small tiles are as fast or
 * faster: exponentials cost most, and they find theirs in the first cache. */
#define MANY 16

enum { DOT = 0, L1 = 1, L2 = 2, L3 = 3, PRODUCT = 4 /* a dot product of MANY coordinates */ };

#define QUERIES_OF(kind) ((kind) == PRODUCT ? TALL : ROWS)
#define KEYS_OF(kind) ((kind) == PRODUCT ? WIDE : COLUMNS)
#define PITCH_OF(kind) ((kind) == PRODUCT ? PITCH : COLUMNS)

#define REAL float
#define SUFFIX _ps
#define WORD int32_t
#define NAME(x) x##_f32
#define MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds to whole numbers */
#define FRACTION 23
#define ONE 0x3f800000
#define LN2_HIGH 0.693145751953125f
#define LN2_LOW 1.428606765330187e-6f
#define TERMS 6
#define LARGE 1e37f
#include "vectors.inc"
#include "pairs.inc"
#include "layers.inc"
#undef REAL
#undef SUFFIX
#undef WORD
#undef NAME
#undef MAGIC
#undef FRACTION
#undef ONE
#undef LN2_HIGH
#undef LN2_LOW
#undef TERMS
#undef LARGE

#define REAL double
#define SUFFIX _pd
#define WORD int64_t
#define NAME(x) x##_f64
#define MAGIC 6755399441055744.0 /* 1.5 * 2^52 */
#define FRACTION 52
#define ONE 0x3ff0000000000000
#define LN2_HIGH 0.693147180369123816490
#define LN2_LOW 1.90821492927058770002e-10
#define TERMS 12
#define LARGE 1e300
#include "vectors.inc"
#include "pairs.inc"
#include "layers.inc"
