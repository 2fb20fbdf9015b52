/* The embedding of features of pairs, or of nodes, forward and backward, each in one pass over these:

       e = GELU(W GELU(x) + b),   x = base + sum over features f and their columns c of
                                      T_f[code_fc]      a row of the table, for codes
                                      v_fc T_f[c]       the table's rows weighted, for values

   or e = x without W. Compiled for K channels of SIZE 4, whole registers; TOGETHER rows are worked out at once. */

#include "vectors.h"

#define WIDTH (K / LANES) /* vectors of a row */
#define TOGETHER 8

typedef struct {
    const int64_t *codes; /* [rows][columns], or NULL */
    const float *values;  /* else these, column c of row r at r * row_step + c * column_step */
    int64_t row_step, column_step, columns;
    const int64_t *first; /* of codes, where each column's rows begin in the table, and the table's end */
    const float *table;   /* [.][K] */
    float *d_table;       /* of codes, the gradient of the table, [threads][.][K] */
} part;

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

/* x[count][K] += what one feature of the rows from `row` on comes to; 1 if a code is not in the table */
static inline int add_codes(vector (*x)[WIDTH], const part *f, int64_t row, int count) {
    for (int i = 0; i < count; i++)
        for (int64_t c = 0; c < f->columns; c++) {
            int64_t code = f->codes[(row + i) * f->columns + c];
            if (code < 0 || code >= f->first[c + 1] - f->first[c]) return 1;
            const vector *found = (const vector *)(f->table + (f->first[c] + code) * K);
            for (int k = 0; k < WIDTH; k++) x[i][k] += found[k];
        }
    return 0;
}

/* x[count][K] += values [count][columns] times table [columns][K] */
static inline void add_product(vector (*x)[WIDTH], const float *values, int64_t row_step, int64_t column_step,
                               int64_t columns, const float *table, int count) {
    vector sum[TOGETHER][WIDTH];
    const float *of[TOGETHER];
    for (int i = 0; i < TOGETHER; i++) of[i] = values + (i < count ? i : 0) * row_step; /* those beyond are not kept */
    memcpy(sum, x, sizeof sum);
    for (int64_t c = 0; c < columns; c++)
        for (int i = 0; i < TOGETHER; i++)
            for (int k = 0; k < WIDTH; k++) sum[i][k] += ((const vector *)(table + c * K))[k] * of[i][c * column_step];
    memcpy(x, sum, sizeof sum);
}

/* e [rows][K] of `features` parts; base [K]; W turned, [K][K], and b [K], or NULL. For the backward pass the inner
   GELU, its slope and that of the outer one are kept, [rows][K], or NULL. Returns 1 if a code is not in its table. */
int forward(int64_t threads, int64_t rows, int64_t features, const part *parts, const float *base, const float *w,
            const float *b, float *e, float *inner, float *slope, float *outer_slope) {
    int failed = 0;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static) reduction(| : failed)
    for (int64_t row = 0; row < rows; row += TOGETHER) {
        int count = rows - row < TOGETHER ? rows - row : TOGETHER;
        vector x[TOGETHER][WIDTH], hidden[TOGETHER][WIDTH];
        for (int i = 0; i < TOGETHER; i++) memcpy(x[i], base, sizeof x[i]);
        for (const part *f = parts; f < parts + features; f++) {
            if (f->codes) failed |= add_codes(x, f, row, count);
            else add_product(x, f->values + row * f->row_step, f->row_step, f->column_step, f->columns, f->table, count);
        }
        if (w) {
            for (int i = 0; i < count; i++)
                for (int k = 0; k < WIDTH; k++)
                    hidden[i][k] = gelu(x[i][k], slope ? slope + (row + i) * K + k * LANES : NULL);
            if (inner) memcpy(inner + row * K, hidden, count * sizeof x[0]);
            for (int i = 0; i < TOGETHER; i++) memcpy(x[i], b, sizeof x[i]);
            add_product(x, (const float *)hidden, K, 1, K, w, count);
            for (int i = 0; i < count; i++)
                for (int k = 0; k < WIDTH; k++)
                    x[i][k] = gelu(x[i][k], outer_slope ? outer_slope + (row + i) * K + k * LANES : NULL);
        }
        memcpy(e + row * K, x, count * sizeof x[0]);
    }
    return failed;
}

/* From the gradient of e those of W GELU(x) + b and of x, [rows][K], which is that of e without W [K][K], and, added to
   what is there, of the tables of codes, each thread its own. The codes are those of the forward pass. */
void backward(int64_t threads, int64_t rows, int64_t features, const part *parts, const float *w, const float *slope,
              const float *outer_slope, const float *d_e, float *d_y, float *d_x) {
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static, 1)
    for (int64_t thread = 0; thread < threads; thread++) {
        int64_t last = rows * (thread + 1) / threads;
        for (int64_t row = rows * thread / threads; row < last; row += TOGETHER) {
            int count = last - row < TOGETHER ? last - row : TOGETHER;
            vector x[TOGETHER][WIDTH];
            memcpy(x, d_e + row * K, count * sizeof x[0]);
            if (w) {
                for (int64_t i = row * K; i < (row + count) * K; i++) d_y[i] = d_e[i] * outer_slope[i];
                memset(x, 0, sizeof x);
                add_product(x, d_y + row * K, K, 1, K, w, count);
                for (int i = 0; i < count; i++)
                    for (int k = 0; k < WIDTH; k++) x[i][k] *= ((const vector *)(slope + (row + i) * K))[k];
                memcpy(d_x + row * K, x, count * sizeof x[0]);
            }
            for (const part *f = parts; f < parts + features; f++)
                for (int i = 0; f->codes && i < count; i++)
                    for (int64_t c = 0; c < f->columns; c++) {
                        int64_t code = f->first[c] + f->codes[(row + i) * f->columns + c];
                        vector *found = (vector *)(f->d_table + (thread * f->first[f->columns] + code) * K);
                        for (int k = 0; k < WIDTH; k++) found[k] += x[i][k];
                    }
        }
    }
}
