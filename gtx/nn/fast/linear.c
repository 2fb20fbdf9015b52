/* A linear map of rows, y = W x + b or y = GELU(W x + b), for a few hundred channels at most: W then stays in the cache,
   and each value of x that is read goes into the outputs of as many registers as there are. What a row comes to does
   not depend on the other rows.

   x [rows][in]; w, W turned, [in][out], out a multiple of WIDE; b [out]; y [rows][out]. */

#include "vectors.h"

#define ABREAST 2 /* vectors of outputs, and rows, that are summed side by side: what fits into the registers */
#define ROWS (REGISTER == 64 ? 8 : 6)
#define WIDE (ABREAST * LANES)

void forward(int64_t threads, int64_t rows, int64_t in, int64_t out, const float *restrict x, const float *restrict w,
             const float *restrict b, int64_t with_gelu, float *restrict y) {
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t row = 0; row < rows; row += ROWS) {
        const float *of[ROWS];
        for (int i = 0; i < ROWS; i++) of[i] = x + (row + i < rows ? row + i : row) * in; /* those beyond are not kept */
        for (int64_t o = 0; o < out; o += WIDE) {
            vector sum[ROWS][ABREAST];
            for (int i = 0; i < ROWS; i++)
                for (int k = 0; k < ABREAST; k++) sum[i][k] = ((const vector *)(b + o))[k];
            for (int64_t c = 0; c < in; c++)
                for (int i = 0; i < ROWS; i++)
                    for (int k = 0; k < ABREAST; k++) sum[i][k] += ((const vector *)(w + c * out + o))[k] * of[i][c];
            for (int i = 0; i < ROWS && row + i < rows; i++)
                for (int k = 0; k < ABREAST; k++)
                    ((vector *)(y + (row + i) * out + o))[k] = with_gelu ? gelu(sum[i][k], NULL) : sum[i][k];
        }
    }
}
