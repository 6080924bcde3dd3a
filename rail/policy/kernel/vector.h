/* Vectors of eight floats, exp, and the attention of one query, shared by the parts of the kernel. */
#pragma once
#include <math.h>
#include <string.h>

typedef float v8 __attribute__((vector_size(32), aligned(4)));
typedef int i8 __attribute__((vector_size(32)));
#define INLINE static inline __attribute__((always_inline))
#define BLOCK 8             /* positions that lie side by side in transposed keys */
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
INLINE int whole_blocks(int count) { return (count + BLOCK - 1) / BLOCK; }

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

/* scores[t] = scale * <q, row t> for count rows that are stored transposed, in blocks of eight:
 * blocks[t / 8][dimension][t % 8]. Up to 31 scores past the last block are written. */
INLINE void products(const float *q, const float *blocks, int size, int count, float scale,
                     float *scores) {
    for (int b = 0; b < whole_blocks(count); b += 4) { /* four sums at once hide the latency */
        const float *at = blocks + (long)b * size * BLOCK;
        v8 s0 = all(0.0f), s1 = s0, s2 = s0, s3 = s0;
        for (int d = 0; d < size; d++, at += BLOCK) {
            v8 value = all(q[d]);
            s0 += value * load(at);
            s1 += value * load(at + size * BLOCK);
            s2 += value * load(at + 2 * size * BLOCK);
            s3 += value * load(at + 3 * size * BLOCK);
        }
        float *to = scores + b * BLOCK;
        store(to, s0 * scale), store(to + 8, s1 * scale);
        store(to + 16, s2 * scale), store(to + 24, s3 * scale);
    }
}

/* scores (count) become their softmax, and 0 from there to the end of the block. */
INLINE void softmax(float *scores, int count) {
    int end = whole_blocks(count) * BLOCK;
    for (int t = count; t < end; t++) scores[t] = LOWEST;
    v8 top = load(scores), mass = all(0.0f);
    for (int t = BLOCK; t < end; t += BLOCK) {
        v8 x = load(scores + t);
        top = where(x > top, x, top);
    }
    top = all(largest(top));
    for (int t = 0; t < end; t += BLOCK) store(scores + t, exp8(load(scores + t) - top));
    for (int t = count; t < end; t++) scores[t] = 0.0f;
    for (int t = 0; t < end; t += BLOCK) mass += load(scores + t);
    float share = 1.0f / total(mass);
    for (int t = 0; t < end; t += BLOCK) store(scores + t, load(scores + t) * share);
}

/* out (size) = sum over rows t < count of weights[t] * rows[t]; weights are 0 up to the block's end,
 * where rows must be readable and finite. size: multiple of 16. */
INLINE void mix(const float *weights, const float *rows, int size, int count, float *out) {
    int end = whole_blocks(count) * BLOCK;
    for (int d = 0; d < size; d += 16) {
        v8 a0 = all(0.0f), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
        const float *at = rows + d;
        for (int t = 0; t < end; t += 4, at += 4 * size) {
            v8 w0 = all(weights[t]), w1 = all(weights[t + 1]);
            v8 w2 = all(weights[t + 2]), w3 = all(weights[t + 3]);
            a0 += w0 * load(at), b0 += w0 * load(at + 8);
            a1 += w1 * load(at + size), b1 += w1 * load(at + size + 8);
            a2 += w2 * load(at + 2 * size), b2 += w2 * load(at + 2 * size + 8);
            a3 += w3 * load(at + 3 * size), b3 += w3 * load(at + 3 * size + 8);
        }
        store(out + d, (a0 + a1) + (a2 + a3));
        store(out + d + 8, (b0 + b1) + (b2 + b3));
    }
}
