/* Vectors of the machine's registers, and their exponential. Compiled for REAL of SIZE bytes, and LANES of them in a
   vector, unless it is said as many as fit into a register. */

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define REGISTER 64
#elif defined(__AVX__)
#define REGISTER 32
#else
#define REGISTER 16
#endif
#define FIT (REGISTER / SIZE)
#ifndef LANES
#define LANES FIT
#endif

#if SIZE == 4
typedef float REAL;
typedef int32_t BITS;
#else
typedef double REAL;
typedef int64_t BITS;
#endif
typedef REAL vector __attribute__((vector_size(LANES * SIZE), aligned(SIZE)));
typedef BITS truth __attribute__((vector_size(LANES * SIZE)));

static inline vector choose(truth yes, vector a, vector b) { return (vector)((yes & (truth)a) | (~yes & (truth)b)); }

/* exp(x) = 2^i exp(f), f = x - i ln 2 in [-ln 2 / 2, ln 2 / 2] (Cody and Waite 1980), exp(f) by its series;
   x <= 0, and exactly 0 where the result would not be a normal number */
static inline vector exponential(vector x) {
#if SIZE == 4
    const REAL least = -87, high = 0.693359375f, low = -2.12194440e-4f, magic = 12582912;
    const REAL series[] = {1 / 5040.f, 1 / 720.f, 1 / 120.f, 1 / 24.f, 1 / 6.f, 1 / 2.f, 1, 1};
    const int mantissa = 23, zero = 127;
#else
    const REAL least = -708, high = 6.93145751953125e-1, low = 1.42860682030941723212e-6, magic = 6755399441055744;
    const REAL series[] = {1 / 6227020800., 1 / 479001600., 1 / 39916800., 1 / 3628800., 1 / 362880., 1 / 40320., 1 / 5040.,
                           1 / 720., 1 / 120., 1 / 24., 1 / 6., 1 / 2., 1, 1};
    const int mantissa = 52, zero = 1023;
#endif
    truth small = x < least;
    x = choose(small, (vector){0}, x);
    vector shifted = x * (REAL)1.4426950408889634 + magic; /* its low bits are i, rounded */
    vector i = shifted - magic, f = x - i * high - i * low, sum = (vector){0} + series[0];
    for (unsigned n = 1; n < sizeof series / sizeof *series; n++) sum = sum * f + series[n];
    truth power = ((truth)shifted << mantissa) + ((BITS)zero << mantissa);
    return choose(small, (vector){0}, sum * (vector)power);
}
