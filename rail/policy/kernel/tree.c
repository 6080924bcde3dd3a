/* Attention along the paths of a prefix tree, forward and backward.
 *
 * Nodes come depth first: the parent of a node at position p is the last node before it at p - 1. So a
 * walk over the nodes that keeps, for each position, the newest node there, always holds the path of the
 * node at hand at positions 0..p, and no index of the paths is needed.
 */
#include "vector.h"

typedef struct {
    int nodes, q_heads, kv_heads, size, length; /* length: positions, a multiple of 32 */
    float scale;
    const int *positions;
} Tree;

/* Floats of work space for either direction. */
long tree_workspace(const Tree *t) { return (long)t->length * (5L * t->size + 2) + 64; }

INLINE void forward_head(const Tree *t, int g, int size, const float *q, const float *k,
                         const float *v, float *work, float *out) {
    int group = t->q_heads / t->kv_heads;
    float *keys = work, *values = keys + (long)t->length * size;
    float *scores = values + (long)t->length * size;
    for (int i = 0; i < t->nodes; i++) {
        int p = t->positions[i];
        put(k + ((long)g * t->nodes + i) * size, size, p, keys);
        memcpy(values + (long)p * size, v + ((long)g * t->nodes + i) * size, sizeof(float) * size);
        for (int h = g * group; h < (g + 1) * group; h++) {
            products(q + ((long)h * t->nodes + i) * size, keys, size, p + 1, t->scale, scores);
            softmax(scores, p + 1);
            mix(scores, values, size, p + 1, out + ((long)i * t->q_heads + h) * size);
        }
    }
}

/* q (H, N, size), k and v (G, N, size) -> out (N, H, size). size: a multiple of 16. */
void tree_forward(const Tree *t, const float *q, const float *k, const float *v, float *work,
                  float *out) {
    memset(work, 0, sizeof(float) * tree_workspace(t));
    for (int g = 0; g < t->kv_heads; g++)
        if (t->size == 32) /* a constant, so that the loops are unrolled */
            forward_head(t, g, 32, q, k, v, work, out);
        else
            forward_head(t, g, t->size, q, k, v, work, out);
}

/* rows[i] += weights[i] * x for i < count. */
INLINE void spread(const float *weights, const float *x, int size, int count, float *rows) {
    for (int d = 0; d < size; d += 16) {
        v8 a = load(x + d), b = load(x + d + 8);
        float *to = rows + d;
        for (int i = 0; i < count; i++, to += size) {
            v8 w = all(weights[i]);
            store(to, load(to) + w * a);
            store(to + 8, load(to + 8) + w * b);
        }
    }
}

INLINE void backward_head(const Tree *t, int g, int size, const float *q, const float *k,
                          const float *v, const float *grad, float *work, float *dq, float *dk,
                          float *dv) {
    int group = t->q_heads / t->kv_heads, deepest = -1;
    long room = (long)t->length * size;
    float *keys = work, *rows = keys + room, *values = rows + room;
    float *key_sums = values + room, *value_sums = key_sums + room;
    float *weights = value_sums + room, *slopes = weights + t->length + 32;
    /* A node's sums are complete once the walk leaves its position for another branch. */
    for (int i = 0; i <= t->nodes; i++) {
        int p = i < t->nodes ? t->positions[i] : 0;
        for (int leaving = i - 1; deepest >= p; deepest--) {
            while (t->positions[leaving] != deepest) leaving--;
            long at = ((long)g * t->nodes + leaving) * size;
            memcpy(dk + at, key_sums + (long)deepest * size, sizeof(float) * size);
            memcpy(dv + at, value_sums + (long)deepest * size, sizeof(float) * size);
            memset(key_sums + (long)deepest * size, 0, sizeof(float) * size);
            memset(value_sums + (long)deepest * size, 0, sizeof(float) * size);
        }
        if (i == t->nodes) break;
        deepest = p;
        const float *key = k + ((long)g * t->nodes + i) * size;
        put(key, size, p, keys);
        memcpy(rows + (long)p * size, key, sizeof(float) * size);
        put(v + ((long)g * t->nodes + i) * size, size, p, values);
        for (int h = g * group; h < (g + 1) * group; h++) {
            const float *x = q + ((long)h * t->nodes + i) * size;
            const float *slope = grad + ((long)i * t->q_heads + h) * size;
            products(x, keys, size, p + 1, t->scale, weights);
            softmax(weights, p + 1);
            products(slope, values, size, p + 1, 1.0f, slopes);
            v8 mean = all(0.0f);
            int end = up_to(p + 1, LANES);
            for (int j = 0; j < end; j += 8) mean += load(weights + j) * load(slopes + j);
            mean = all(total(mean));
            for (int j = 0; j < end; j += 8)
                store(slopes + j, load(weights + j) * (load(slopes + j) - mean) * t->scale);
            mix(slopes, rows, size, p + 1, dq + ((long)h * t->nodes + i) * size);
            spread(slopes, x, size, p + 1, key_sums);
            spread(weights, slope, size, p + 1, value_sums);
        }
    }
}

/* grad (N, H, size), the rest as in `tree_forward` -> dq (H, N, size), dk and dv (G, N, size). */
void tree_backward(const Tree *t, const float *q, const float *k, const float *v,
                   const float *grad, float *work, float *dq, float *dk, float *dv) {
    memset(work, 0, sizeof(float) * tree_workspace(t));
    for (int g = 0; g < t->kv_heads; g++)
        if (t->size == 32)
            backward_head(t, g, 32, q, k, v, grad, work, dq, dk, dv);
        else
            backward_head(t, g, t->size, q, k, v, grad, work, dq, dk, dv);
}
