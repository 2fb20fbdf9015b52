/* Softmax attention over the ordered pairs of every molecule, forward and backward, without padding.

   For a receiver r of a molecule with n senders, its own atoms or those it reads, in every head,

       s_rs = q_r . (k_s + W_k e_rs) + w_b . e_rs + b_rs    scores
       w_rs = exp(s_rs - m) / sum_s exp(s_rs - m)           weights, m the largest score of r
       o_r  = sum_s f_rs w_rs (v_s + W_v e_rs)              the outcome; f are factors of dropout

   worked out as s_rs = q_r . k_s + a_r . e_rs + b_rs with a_r = W_k^T q_r + w_b, and
   o_r = sum_s f_rs w_rs v_s + W_v x_r with x_r = sum_s f_rs w_rs e_rs, the collected pair features.

   A receiver's scores stay on chip, in one row over (sender, head), as pair features and biases lie in memory. Vectors
   run along that row, so that molecules of any size fill them; keys and values are laid beside it once per molecule,
   [channel][sender, head]. Of the size of the pairs, only the weights are kept for the backward pass.

   Compiled for REAL of SIZE bytes, H heads, C channels of query and key, D of values, K pair features; H a power of 2,
   at most 16. Part i, a thread of its own, has the molecules cuts[i] to cuts[i + 1]. */

#include <math.h>
#include <stdlib.h>

#define LANES (FIT > H ? FIT : H)
#include "vectors.h"
#define TURNS (LANES / H) /* senders in a vector */
#define GROUP (H < 8 ? H : 8)
#define LENGTH(n) (((n) * H + LANES - 1) / LANES * LANES)

typedef REAL per_head __attribute__((vector_size(H * SIZE), aligned(SIZE)));

static inline vector *at(REAL *x) { return (vector *)x; }
static inline vector read(const REAL *x) { return *(const vector *)x; }

/* [sender][H][channels] to [channel][sender, head], and back */
static void lay(REAL *restrict to, const REAL *restrict from, int64_t stride, int64_t n, int channels) {
    int64_t length = LENGTH(n);
    for (int64_t s = 0; s < n; s++)
        for (int h = 0; h < H; h++)
            for (int c = 0; c < channels; c++) to[c * length + s * H + h] = from[s * stride + h * channels + c];
    for (int c = 0; c < channels; c++)
        for (int64_t j = n * H; j < length; j++) to[c * length + j] = 0;
}

static void lay_back(REAL *restrict to, const REAL *restrict from, int64_t n, int channels) {
    int64_t length = LENGTH(n);
    for (int64_t s = 0; s < n; s++)
        for (int h = 0; h < H; h++)
            for (int c = 0; c < channels; c++) to[(s * H + h) * channels + c] = from[c * length + s * H + h];
}

/* a receiver's [H][channels], for each channel a vector that repeats the heads; and a vector's senders summed */
static inline void repeat(vector *restrict to, const REAL *restrict from, int channels) {
    for (int c = 0; c < channels; c++)
        for (int l = 0; l < LANES; l++) to[c][l] = from[(l % H) * channels + c];
}

static inline void fold(REAL *restrict to, const vector *from, int channels) {
    for (int c = 0; c < channels; c++)
        for (int h = 0; h < H; h++) {
            REAL sum = 0;
            for (int t = 0; t < TURNS; t++) sum += from[c][t * H + h];
            to[h * channels + c] = sum;
        }
}

/* [H][K] to [K][H] */
static inline void turn(per_head *restrict to, const REAL *restrict from) {
    for (int k = 0; k < K; k++)
        for (int h = 0; h < H; h++) to[k][h] = from[h * K + k];
}

static inline void add(REAL *restrict to, REAL factor, const REAL *restrict from, int n) {
    for (int i = 0; i < n; i++) to[i] += factor * from[i];
}

static inline REAL dot(const REAL *restrict a, const REAL *restrict b, int n) {
    REAL sum[FIT] = {0}, total = 0;
    int i = 0;
    for (; i + FIT <= n; i += FIT)
        for (int l = 0; l < FIT; l++) sum[l] += a[i + l] * b[i + l];
    for (; i < n; i++) total += a[i] * b[i];
    for (int l = 0; l < FIT; l++) total += sum[l];
    return total;
}

/* to[H][D] += W [K][H][D] x [H][K], the sums of all heads side by side: one alone would wait for its last addition */
static inline void add_mapped(REAL *restrict to, const REAL *restrict w, const REAL *restrict x) {
#if D & (D - 1)
    for (int k = 0; k < K; k++)
        for (int i = 0; i < H * D; i++) to[i] += w[k * H * D + i] * x[i / D * K + k];
#else
    typedef REAL values __attribute__((vector_size(D * SIZE), aligned(SIZE)));
    values sum[H];
    memcpy(sum, to, sizeof sum);
    for (int k = 0; k < K; k++)
        for (int h = 0; h < H; h++) sum[h] += *(const values *)(w + (k * H + h) * D) * x[h * K + k];
    memcpy(to, sum, sizeof sum);
#endif
}

/* row[s][h] += a[h] . e[s], a turned */
static inline void edge_dots(REAL *restrict row, const per_head *restrict a, const REAL *restrict e, int64_t n) {
    int64_t s = 0;
    for (; s + 4 <= n; s += 4) {
        per_head sum[4] = {{0}};
        for (int k = 0; k < K; k++)
            for (int i = 0; i < 4; i++) sum[i] += a[k] * e[(s + i) * K + k];
        for (int i = 0; i < 4; i++) *(per_head *)(row + (s + i) * H) += sum[i];
    }
    for (; s < n; s++) {
        per_head sum = {0};
        for (int k = 0; k < K; k++) sum += a[k] * e[s * K + k];
        *(per_head *)(row + s * H) += sum;
    }
}

/* to[h][k] = sum_s row[s][h] e[s][k] */
static inline void edge_sums(REAL *restrict to, const REAL *restrict row, const REAL *restrict e, int64_t n) {
#if K % LANES == 0
    for (int k = 0; k < K; k += LANES)
        for (int h = 0; h < H; h += GROUP) {
            vector sum[GROUP];
            for (int i = 0; i < GROUP; i++) sum[i] = (vector){0};
            for (int64_t s = 0; s < n; s++)
                for (int i = 0; i < GROUP; i++) sum[i] += read(e + s * K + k) * row[s * H + h + i];
            for (int i = 0; i < GROUP; i++) *at(to + (h + i) * K + k) = sum[i];
        }
#else
    memset(to, 0, H * K * SIZE);
    for (int64_t s = 0; s < n; s++)
        for (int h = 0; h < H; h++)
            for (int k = 0; k < K; k++) to[h * K + k] += row[s * H + h] * e[s * K + k];
#endif
}

/* to[s][k] = sum_h row[s][h] a[h][k] + other[s][h] b[h][k]; a or b may be missing */
static inline void edge_gradients(REAL *restrict to, const REAL *restrict row, const REAL *restrict a,
                                  const REAL *restrict other, const REAL *restrict b, int64_t n) {
#if K % LANES == 0
    for (int64_t s = 0; s < n; s++)
        for (int k = 0; k < K; k += LANES) {
            vector sum = {0};
            for (int h = 0; a && h < H; h++) sum += read(a + h * K + k) * row[s * H + h];
            for (int h = 0; b && h < H; h++) sum += read(b + h * K + k) * other[s * H + h];
            *at(to + s * K + k) = sum;
        }
#else
    memset(to, 0, n * K * SIZE);
    for (int64_t s = 0; s < n; s++)
        for (int h = 0; h < H; h++)
            for (int k = 0; k < K; k++)
                to[s * K + k] += (a ? row[s * H + h] * a[h * K + k] : 0) + (b ? other[s * H + h] * b[h * K + k] : 0);
#endif
}

/* room for `rows` rows of the largest molecule; NULL if there is none */
static REAL *space(int64_t first, int64_t last, const int64_t *ptr, int rows, int64_t *length) {
    int64_t most = 1;
    for (int64_t g = first; g < last; g++) most = ptr[g + 1] - ptr[g] > most ? ptr[g + 1] - ptr[g] : most;
    *length = LENGTH(most);
    void *found = NULL;
    return posix_memalign(&found, 64, *length * rows * SIZE) ? NULL : found;
}

/* Receivers ptr[g] to ptr[g + 1] of molecule g attend to senders source_ptr[g] to source_ptr[g + 1], perhaps the same.
   q [N][H][C] of the receivers, k [M][H][C] and v [M][H][D] of the senders, a row every q_stride ...; e [pairs][K];
   W_k [H][C][K], W_v turned to [K][H][D], w_b [H][K]; b, f, w [pairs][H]; present [pairs]. Any of these but q, k, v may be
   missing. Gives w, o [N][H][D], and x [N][H][K] if there is a W_v; returns 1 if memory ran out. */
int forward(int64_t parts, const int64_t *cuts, const int64_t *ptr, const int64_t *source_ptr, const int64_t *pair_ptr,
            const REAL *q, int64_t q_stride, const REAL *k, int64_t k_stride, const REAL *v, int64_t v_stride,
            const REAL *e, const REAL *w_k, const REAL *w_v, const REAL *w_b, const REAL *b, const uint8_t *present,
            const REAL *f, REAL *w, REAL *o, REAL *x) {
    int failed = 0;
#pragma omp parallel for num_threads(parts) if (parts > 1) schedule(static, 1) reduction(| : failed)
    for (int64_t part = 0; part < parts; part++) {
        int64_t first = cuts[part], last = cuts[part + 1], most;
        REAL *keys = space(first, last, source_ptr, C + D + 1, &most), *values = keys + C * most, *row = values + D * most;
        if (!keys) {
            failed = 1;
            continue;
        }
        per_head of_edge[K + 1], always[K + 1];
        memset(always, 0, sizeof always);
        if (w_b) turn(always, w_b);
        for (int64_t g = first; g < last; g++) {
            int64_t start = ptr[g], sender = source_ptr[g], n = source_ptr[g + 1] - sender, L = LENGTH(n);
            lay(keys, k + sender * k_stride, k_stride, n, C);
            lay(values, v + sender * v_stride, v_stride, n, D);
            for (int64_t r = start; r < ptr[g + 1]; r++) {
                int64_t p = pair_ptr[g] + (r - start) * n;

                /* scores */
                if (b) memcpy(row, b + p * H, n * H * SIZE);
                else memset(row, 0, n * H * SIZE);
                if (w_k) {
                    REAL a[H * K + 1];
                    memset(a, 0, sizeof a);
                    for (int i = 0; i < H * C; i++) add(a + i / C * K, q[r * q_stride + i], w_k + i * K, K);
                    turn(of_edge, a);
                    for (int i = 0; i < K; i++) of_edge[i] += always[i];
                }
                if (w_k || w_b) edge_dots(row, w_k ? of_edge : always, e + p * K, n);
                for (int64_t s = 0; present && s < n; s++)
                    if (!present[p + s]) for (int h = 0; h < H; h++) row[s * H + h] = -INFINITY;
                for (int64_t j = n * H; j < L; j++) row[j] = -INFINITY;
                vector query[C], top = (vector){0} - INFINITY;
                repeat(query, q + r * q_stride, C);
                for (int64_t j = 0; j < L; j += LANES) {
                    vector s = read(row + j);
                    for (int c = 0; c < C; c++) s += query[c] * read(keys + c * L + j);
                    *at(row + j) = s;
                    top = choose(s > top, s, top);
                }

                /* weights */
                for (int h = 0; h < H; h++) {
                    REAL m = top[h];
                    for (int t = 1; t < TURNS; t++) m = top[t * H + h] > m ? top[t * H + h] : m;
                    if (m == -INFINITY) m = 0; /* no edge at all */
                    for (int t = 0; t < TURNS; t++) top[t * H + h] = m;
                }
                vector sum = {0};
                for (int64_t j = 0; j < L; j += LANES) sum += *at(row + j) = exponential(read(row + j) - top);
                for (int h = 0; h < H; h++) {
                    REAL z = 0;
                    for (int t = 0; t < TURNS; t++) z += sum[t * H + h];
                    for (int t = 0; t < TURNS; t++) sum[t * H + h] = z == 0 ? 0 : 1 / z;
                }
                for (int64_t j = 0; j < L; j += LANES) *at(row + j) *= sum;
                if (w) memcpy(w + p * H, row, n * H * SIZE);

                /* weighted sums */
                for (int64_t j = 0; f && j < n * H; j++) row[j] *= f[p * H + j];
                vector out[D];
                for (int d = 0; d < D; d++) out[d] = (vector){0};
                for (int64_t j = 0; j < L; j += LANES)
                    for (int d = 0; d < D; d++) out[d] += read(row + j) * read(values + d * L + j);
                fold(o + r * H * D, out, D);
                if (w_v) {
                    edge_sums(x + r * H * K, row, e + p * K, n);
                    add_mapped(o + r * H * D, w_v, x + r * H * K);
                }
            }
        }
        free(keys);
    }
    return failed;
}

/* From the gradient of o those of q, k, v, e and b, and, added to what is there, of W_k, W_v [H][D][K] and w_b, each
   part its own; all but d_q, d_k and d_v may be unwanted, those of W_k, W_v and w_b where these are missing. */
int backward(int64_t parts, const int64_t *cuts, const int64_t *ptr, const int64_t *source_ptr, const int64_t *pair_ptr,
             const REAL *q, int64_t q_stride, const REAL *k, int64_t k_stride, const REAL *v, int64_t v_stride,
             const REAL *e, const REAL *w_k, const REAL *w_v, const REAL *w_b, const REAL *f, const REAL *w,
             const REAL *x, const REAL *d_o, REAL *d_q, REAL *d_k, REAL *d_v, REAL *d_e, REAL *d_w_k, REAL *d_w_v,
             REAL *d_w_b, REAL *d_b) {
    int failed = 0;
#pragma omp parallel for num_threads(parts) if (parts > 1) schedule(static, 1) reduction(| : failed)
    for (int64_t part = 0; part < parts; part++) {
        int64_t first = cuts[part], last = cuts[part + 1], most;
        REAL *to_w_k = d_w_k ? d_w_k + part * H * C * K : NULL, *to_w_v = d_w_v ? d_w_v + part * H * D * K : NULL;
        REAL *to_w_b = d_w_b ? d_w_b + part * H * K : NULL;
        REAL *keys = space(first, last, source_ptr, 2 * (C + D) + 3, &most), *values = keys + C * most;
        REAL *d_keys = values + D * most, *d_values = d_keys + C * most;
        REAL *weight = d_values + D * most, *kept = weight + most, *row = kept + most;
        if (!keys) {
            failed = 1;
            continue;
        }
        REAL a[H * K + 1], d_x[H * K + 1];
        for (int64_t g = first; g < last; g++) {
            int64_t start = ptr[g], sender = source_ptr[g], n = source_ptr[g + 1] - sender, L = LENGTH(n);
            lay(keys, k + sender * k_stride, k_stride, n, C);
            lay(values, v + sender * v_stride, v_stride, n, D);
            memset(d_keys, 0, C * L * SIZE);
            memset(d_values, 0, D * L * SIZE);
            for (int64_t j = n * H; j < L; j++) weight[j] = kept[j] = 0;
            for (int64_t r = start; r < ptr[g + 1]; r++) {
                int64_t p = pair_ptr[g] + (r - start) * n;
                memcpy(weight, w + p * H, n * H * SIZE);
                for (int64_t j = 0; j < n * H; j++) kept[j] = f ? weight[j] * f[p * H + j] : weight[j];

                /* of the weights: f (d_o . v + d_x . e) */
                memset(row, 0, L * SIZE);
                if (w_v) {
                    per_head turned[K + 1];
                    memset(d_x, 0, sizeof d_x);
                    for (int i = 0; i < H * D; i++) {
                        add(d_x + i / D * K, d_o[r * H * D + i], w_v + i * K, K);
                        if (to_w_v) add(to_w_v + i * K, d_o[r * H * D + i], x + (r * H + i / D) * K, K);
                    }
                    turn(turned, d_x);
                    edge_dots(row, turned, e + p * K, n);
                }
                vector query[C], out[D], mean = {0};
                repeat(query, q + r * q_stride, C);
                repeat(out, d_o + r * H * D, D);
                for (int64_t j = 0; j < L; j += LANES) {
                    vector sum = read(row + j);
                    for (int d = 0; d < D; d++) {
                        sum += out[d] * read(values + d * L + j);
                        *at(d_values + d * L + j) += out[d] * read(kept + j);
                    }
                    *at(row + j) = sum;
                }
                for (int64_t j = 0; f && j < n * H; j++) row[j] *= f[p * H + j];

                /* of the scores: w (d_w - sum w d_w) */
                for (int64_t j = 0; j < L; j += LANES) mean += read(weight + j) * read(row + j);
                for (int h = 0; h < H; h++) {
                    REAL m = 0;
                    for (int t = 0; t < TURNS; t++) m += mean[t * H + h];
                    for (int t = 0; t < TURNS; t++) mean[t * H + h] = m;
                }
                vector d_query[C];
                for (int c = 0; c < C; c++) d_query[c] = (vector){0};
                for (int64_t j = 0; j < L; j += LANES) {
                    vector s = read(weight + j) * (read(row + j) - mean);
                    *at(row + j) = s;
                    for (int c = 0; c < C; c++) {
                        d_query[c] += s * read(keys + c * L + j);
                        *at(d_keys + c * L + j) += s * query[c];
                    }
                }
                fold(d_q + r * H * C, d_query, C);
                if (d_b) memcpy(d_b + p * H, row, n * H * SIZE);
                if (w_k || w_b) {
                    REAL d_a[H * K + 1];
                    edge_sums(d_a, row, e + p * K, n);
                    if (to_w_b) add(to_w_b, 1, d_a, H * K);
                    memset(a, 0, sizeof a);
                    if (w_b) memcpy(a, w_b, H * K * SIZE);
                    for (int i = 0; w_k && i < H * C; i++) {
                        REAL query = q[r * q_stride + i];
                        add(a + i / C * K, query, w_k + i * K, K);
                        if (to_w_k) add(to_w_k + i * K, query, d_a + i / C * K, K);
                        d_q[r * H * C + i] += dot(w_k + i * K, d_a + i / C * K, K);
                    }
                }
                if (d_e) edge_gradients(d_e + p * K, row, w_k || w_b ? a : NULL, kept, w_v ? d_x : NULL, n);
            }
            lay_back(d_k + sender * H * C, d_keys, n, C);
            lay_back(d_v + sender * H * D, d_values, n, D);
        }
        free(keys);
    }
    return failed;
}
