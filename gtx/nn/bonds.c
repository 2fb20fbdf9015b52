/* Messages over the bonds, forward and backward: out_r = (1 + eps) x_r + sum over bonds from s to r of ReLU(m),
   m = x_s + b + sum over columns c of T[first[c] + code_c], where T is the table of the bonds' embedding, mapped by the
   layer's linear map, and b its bias.

   Compiled for K channels. x, out [nodes][K]; codes [bonds][columns]; first [columns + 1], where each column's rows
   begin in T and where T ends. */

#include <stdint.h>

static inline void add(float *restrict to, const float *restrict from) {
    for (int k = 0; k < K; k++) to[k] += from[k];
}

/* Returns 1 if there is no such code or node. */
int forward(int64_t nodes, int64_t bonds, int64_t columns, const int64_t *sender, const int64_t *receiver,
            const int64_t *codes, const int64_t *first, const float *restrict table, const float *restrict bias,
            const float *restrict x, float scale, float *restrict out) {
    for (int64_t i = 0; i < nodes * K; i++) out[i] = scale * x[i];
    for (int64_t e = 0; e < bonds; e++, codes += columns) {
        int64_t s = sender[e], r = receiver[e];
        if (s < 0 || s >= nodes || r < 0 || r >= nodes) return 1;
        float m[K];
        for (int k = 0; k < K; k++) m[k] = x[s * K + k] + bias[k];
        for (int64_t c = 0; c < columns; c++) {
            if (codes[c] < 0 || codes[c] >= first[c + 1] - first[c]) return 1;
            add(m, table + (first[c] + codes[c]) * K);
        }
        for (int k = 0; k < K; k++) out[r * K + k] += m[k] > 0 ? m[k] : 0;
    }
    return 0;
}

/* From the gradient of out that of x and, added to what is there, those of T and b; codes and nodes are those of the
   forward pass. */
void backward(int64_t nodes, int64_t bonds, int64_t columns, const int64_t *sender, const int64_t *receiver,
              const int64_t *codes, const int64_t *first, const float *restrict table, const float *restrict bias,
              const float *restrict x, float scale, const float *restrict d_out, float *restrict d_x,
              float *restrict d_table, float *restrict d_bias) {
    for (int64_t i = 0; i < nodes * K; i++) d_x[i] = scale * d_out[i];
    for (int64_t e = 0; e < bonds; e++, codes += columns) {
        float m[K], d_m[K];
        for (int k = 0; k < K; k++) m[k] = x[sender[e] * K + k] + bias[k];
        for (int64_t c = 0; c < columns; c++) add(m, table + (first[c] + codes[c]) * K);
        for (int k = 0; k < K; k++) d_m[k] = m[k] > 0 ? d_out[receiver[e] * K + k] : 0;
        add(d_x + sender[e] * K, d_m);
        add(d_bias, d_m);
        for (int64_t c = 0; c < columns; c++) add(d_table + (first[c] + codes[c]) * K, d_m);
    }
}
