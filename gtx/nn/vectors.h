/* Vectors of a register of the machine, in single precision, and GELU of one. */

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define REGISTER 64
#elif defined(__AVX__)
#define REGISTER 32
#else
#define REGISTER 16
#endif
#define LANES (REGISTER / 4)

typedef float vector __attribute__((vector_size(REGISTER), aligned(4)));
typedef int32_t truth __attribute__((vector_size(REGISTER)));

static inline vector choose(truth yes, vector a, vector b) { return (vector)((yes & (truth)a) | (~yes & (truth)b)); }

/* exp(x) for x <= 0, as in gtx/attention/fast/ragged.c; about 1e-38 from -87 on */
static inline vector exponential(vector x) {
    const float series[] = {1 / 5040.f, 1 / 720.f, 1 / 120.f, 1 / 24.f, 1 / 6.f, 1 / 2.f, 1, 1};
    x = choose(x < -87, (vector){0} - 87, x);
    vector shifted = x * 1.4426950408889634f + 12582912; /* its low bits are i, rounded */
    vector i = shifted - 12582912, f = x - i * 0.693359375f + i * 2.12194440e-4f, sum = (vector){0} + series[0];
    for (int n = 1; n < 8; n++) sum = sum * f + series[n];
    return sum * (vector)(((truth)shifted << 23) + (127 << 23));
}

/* x / 2 (1 + erf(x / sqrt 2)); erf(y) = y P(y^2) / Q(y^2) for |y| < 4, beyond which it rounds to 1, is that of
   generic_fast_erf_float in Eigen's SpecialFunctionsImpl.h. With its slope, (1 + erf(x / sqrt 2)) / 2 +
   x exp(-x^2 / 2) / sqrt(2 pi), if that is wanted */
static inline vector gelu(vector x, float *slope) {
    const float p[] = {-2.72614225801306e-10f, 2.77068142495902e-08f, -2.10102402082508e-06f, -5.69250639462346e-05f,
                       -7.34990630326855e-04f, -2.95459980854025e-03f, -1.60960333262415e-02f};
    const float q[] = {-1.45660718464996e-05f, -2.13374055278905e-04f, -1.68282697438203e-03f, -7.37332916720468e-03f,
                       -1.42647390514189e-02f};
    vector y = x * 0.70710678118654752f, most = (vector){0} + 4;
    y = choose(y > most, most, choose(y < -most, -most, y));
    vector square = y * y, above = (vector){0} + p[0], below = (vector){0} + q[0];
    for (int i = 1; i < 7; i++) above = above * square + p[i];
    for (int i = 1; i < 5; i++) below = below * square + q[i];
    vector share = 0.5f * (1 + y * above / below);
    if (slope) *(vector *)slope = share + x * 0.39894228040143268f * exponential(-0.5f * x * x);
    return x * share;
}
