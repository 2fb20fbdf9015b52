/* Factors of dropout, and GELU with its slope, in one pass each. */

#include "gelu.h"

/* a hash of 32 bits without bias, "lowbias32" of Wellons 2018 (https://nullprogram.com/blog/2018/07/31/) */
static inline uint32_t mixed(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352d;
    x = (x ^ x >> 15) * 0x846ca68b;
    return x ^ x >> 16;
}

/* f [n] = scale where 16 random bits are at least `level`, else 0. Word i of the stream that `low` and `high` begin
   decides the entries i and i + ceil(n / 2), whatever the threads. */
void dropout(int64_t threads, int64_t n, int64_t low, int64_t high, int64_t level, float scale, float *restrict f) {
    int64_t half = (n + 1) / 2;
    uint32_t first = low, second = high, least = level;
    float *restrict g = f + half;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t i = 0; i < n / 2; i++) {
        uint32_t word = mixed(mixed(first + (uint32_t)i) ^ second);
        f[i] = (word & 0xffff) >= least ? scale : 0;
        g[i] = word >> 16 >= least ? scale : 0;
    }
    if (n % 2) f[half - 1] = mixed(mixed(first + (uint32_t)(half - 1)) ^ second) >> 16 >= least ? scale : 0;
}

/* y [n] = GELU(x [n]), and its slope */
void activate(int64_t threads, int64_t n, const float *restrict x, float *restrict y, float *restrict slope) {
    int64_t whole = n / LANES * LANES;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t i = 0; i < whole; i += LANES) *(vector *)(y + i) = gelu(*(const vector *)(x + i), slope + i);
    if (whole < n) {
        vector rest = {0}, slopes, made;
        memcpy(&rest, x + whole, (n - whole) * sizeof(float));
        made = gelu(rest, (float *)&slopes);
        memcpy(y + whole, &made, (n - whole) * sizeof(float));
        memcpy(slope + whole, &slopes, (n - whole) * sizeof(float));
    }
}
