/* Messages over the bonds: (1 + eps) x_r + sum over bonds from s to r of ReLU(x_s + b + sum over columns c of
   T[first[c] + code_c]), where T is the table of the bonds' embedding, mapped by the layer's linear map, and b its bias.

   Compiled for K channels. x, out [nodes][K]; codes [bonds][columns]; first [columns + 1], where each column's rows
   begin in T and where T ends. Returns 1 if there is no such code or node. */

#include <stdint.h>

int messages(int64_t nodes, int64_t bonds, int64_t columns, const int64_t *sender, const int64_t *receiver,
             const int64_t *codes, const int64_t *first, const float *restrict table, const float *restrict bias,
             const float *restrict x, float scale, float *restrict out) {
    for (int64_t i = 0; i < nodes * K; i++) out[i] = scale * x[i];
    for (int64_t e = 0; e < bonds; e++, codes += columns) {
        int64_t s = sender[e], r = receiver[e];
        if (s < 0 || s >= nodes || r < 0 || r >= nodes) return 1;
        float message[K];
        for (int k = 0; k < K; k++) message[k] = x[s * K + k] + bias[k];
        for (int64_t c = 0; c < columns; c++) {
            if (codes[c] < 0 || codes[c] >= first[c + 1] - first[c]) return 1;
            const float *row = table + (first[c] + codes[c]) * K;
            for (int k = 0; k < K; k++) message[k] += row[k];
        }
        for (int k = 0; k < K; k++) out[r * K + k] += message[k] > 0 ? message[k] : 0;
    }
    return 0;
}
