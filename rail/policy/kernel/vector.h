/* Vectors of eight floats, exp, and the attention of one query, shared by the parts of the kernel. */
#pragma once
#include <math.h>
#include <string.h>

typedef float v8 __attribute__((vector_size(32), aligned(4)));
typedef int i8 __attribute__((vector_size(32)));
#define INLINE static inline __attribute__((always_inline))
#define LANES 8
#define BLOCK 32 /* positions that lie side by side in transposed rows */
#define LOWEST (-3.0e38f)

INLINE v8 load(const float *p) { return *(const v8 *)p; }
INLINE void store(float *p, v8 x) { *(v8 *)p = x; }
INLINE v8 all(float x) { return (v8){x, x, x, x, x, x, x, x}; }
INLINE v8 where(i8 mask, v8 yes, v8 no) { return (v8)(((i8)yes & mask) | ((i8)no & ~mask)); }
INLINE float total(v8 x) {
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}
INLINE float largest(v8 x) {
    float top = x[0];
    for (int k = 1; k < 8; k++) top = x[k] > top ? x[k] : top;
    return top;
}
INLINE int up_to(int count, int step) { return (count + step - 1) / step * step; }

/* exp for x <= 88, relative error below 2e-7; smaller than -87 counts as -87. */
INLINE v8 exp8(v8 x) {
    const v8 low = all(-87.0f);
    x = where(x < low, low, x);
    v8 n = x * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: the sum rounds to an integer */
    i8 bits = (i8)n << 23;
    n -= 12582912.0f;
    x = x - n * 0.693359375f + n * 2.12194440e-4f;
    v8 y = all(1.9875691500e-4f);
    y = y * x + 1.3981999507e-3f;
    y = y * x + 8.3334519073e-3f;
    y = y * x + 4.1665795894e-2f;
    y = y * x + 1.6666665459e-1f;
    y = y * x + 5.0000001201e-1f;
    y = y * x * x + x + 1.0f;
    return (v8)((i8)y + bits);
}

/* Rows of vectors are stored transposed in blocks: blocks[t / 32][dimension][t % 32]. */
INLINE void put(const float *x, int size, int t, float *blocks) {
    float *to = blocks + (long)(t / BLOCK) * size * BLOCK + t % BLOCK;
    for (int d = 0; d < size; d++) to[d * BLOCK] = x[d];
}

/* scores[t] = scale * <q, row t> for count transposed rows; whole blocks are written. */
INLINE void products(const float *q, const float *blocks, int size, int count, float scale,
                     float *scores) {
    for (int t = 0; t < count; t += BLOCK) {
        v8 s0 = all(0.0f), s1 = s0, s2 = s0, s3 = s0;
        for (int d = 0; d < size; d++, blocks += BLOCK) {
            v8 value = all(q[d]);
            s0 += value * load(blocks), s1 += value * load(blocks + 8);
            s2 += value * load(blocks + 16), s3 += value * load(blocks + 24);
        }
        store(scores + t, s0 * scale), store(scores + t + 8, s1 * scale);
        store(scores + t + 16, s2 * scale), store(scores + t + 24, s3 * scale);
    }
}

/* scores (count) become their softmax, and 0 from there to a multiple of 8. */
INLINE void softmax(float *scores, int count) {
    int end = up_to(count, LANES);
    for (int t = count; t < end; t++) scores[t] = LOWEST;
    v8 top = load(scores), mass = all(0.0f);
    for (int t = LANES; t < end; t += LANES) {
        v8 x = load(scores + t);
        top = where(x > top, x, top);
    }
    top = all(largest(top));
    for (int t = 0; t < end; t += LANES) store(scores + t, exp8(load(scores + t) - top));
    for (int t = count; t < end; t++) scores[t] = 0.0f;
    for (int t = 0; t < end; t += LANES) mass += load(scores + t);
    v8 share = all(1.0f / total(mass));
    for (int t = 0; t < end; t += LANES) store(scores + t, load(scores + t) * share);
}

/* out (width) = sum over rows t < end of weights[t] * rows[t], rows `stride` apart. */
#define MIX(WIDTH)                                                                             \
    INLINE void mix##WIDTH(const float *weights, const float *rows, int stride, int end,       \
                           float *out) {                                                       \
        v8 even[WIDTH / 8], odd[WIDTH / 8];                                                    \
        for (int k = 0; k < WIDTH / 8; k++) even[k] = odd[k] = all(0.0f);                      \
        for (int t = 0; t < end; t += 2, rows += 2 * stride) {                                 \
            v8 first = all(weights[t]), second = all(weights[t + 1]);                          \
            for (int k = 0; k < WIDTH / 8; k++) even[k] += first * load(rows + 8 * k);         \
            for (int k = 0; k < WIDTH / 8; k++) odd[k] += second * load(rows + stride + 8 * k); \
        }                                                                                      \
        for (int k = 0; k < WIDTH / 8; k++) store(out + 8 * k, even[k] + odd[k]);              \
    }
MIX(16)
MIX(32)

/* out (size) = sum over rows t < count of weights[t] * rows[t]; weights are 0 up to a multiple of 8,
 * where rows must be readable and finite. size: multiple of 16. */
INLINE void mix(const float *weights, const float *rows, int size, int count, float *out) {
    int end = up_to(count, LANES), d = 0;
    for (; d + 32 <= size; d += 32) mix32(weights, rows + d, size, end, out + d);
    if (d < size) mix16(weights, rows + d, size, end, out + d);
}
