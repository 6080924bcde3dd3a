/* One cached forward pass of a Llama-shaped decoder, float32, one thread.
 *
 * Entries are (token, row, position). A layer first writes the keys and values of all entries into the
 * cache, then lets each entry attend to positions 0..own of its row, so chunks and single tokens travel
 * together. Every output element is accumulated in the same order whatever the number of entries: the
 * bits of an entry do not depend on its neighbours.
 *
 * Weights are packed by the caller into panels of 16 outputs: packed[panel][input][16].
 * One head of one row holds its keys as (length / 32, hd, 32) and its values as (length, hd).
 */
#include "vector.h"

typedef struct {
    const float *qkv, *qkv_bias, *qk_norm, *out, *gate_up, *down;
    float *keys, *values;
} Layer;

typedef struct {
    int hidden, q_heads, kv_heads, head_dim, feed_forward, layers, length;
    float eps;
    const float *embed, *norm, *cos, *sin;
    const Layer *layer;
} Model;

/* R rows of x (R, inputs) times one panel: R x 16 accumulators, inputs in order. */
#define TILE(R)                                                                        \
    INLINE void tile##R(const float *x, int inputs, const float *panel, v8 *acc) {    \
        v8 c[R], d[R]; /* locals, so that they stay in registers */                    \
        for (int r = 0; r < R; r++) c[r] = d[r] = all(0.0f);                           \
        for (int k = 0; k < inputs; k++) {                                             \
            v8 a = load(panel + 16 * k), b = load(panel + 16 * k + 8);                 \
            for (int r = 0; r < R; r++) {                                              \
                v8 value = all(x[(long)r * inputs + k]);                               \
                c[r] += value * a;                                                     \
                d[r] += value * b;                                                     \
            }                                                                          \
        }                                                                              \
        for (int r = 0; r < R; r++) acc[2 * r] = c[r], acc[2 * r + 1] = d[r];          \
    }
TILE(1)
TILE(2)
TILE(4)
TILE(6)

/* y (n, outputs) = x (n, inputs) W^T, plus bias, plus what y holds if `add`. outputs: multiple of 16. */
static void linear(const float *x, int n, int inputs, const float *packed, const float *bias,
                   int outputs, int add, float *y) {
    for (int panel = 0; panel < outputs; panel += 16) {
        const float *w = packed + (long)panel * inputs;
        v8 b0 = bias ? load(bias + panel) : all(0.0f), b1 = bias ? load(bias + panel + 8) : b0;
        for (int i = 0; i < n;) {
            v8 acc[12];
            int rows = n - i >= 6 ? 6 : n - i >= 4 ? 4 : n - i >= 2 ? 2 : 1;
            const float *at = x + (long)i * inputs;
            switch (rows) {
            case 6: tile6(at, inputs, w, acc); break;
            case 4: tile4(at, inputs, w, acc); break;
            case 2: tile2(at, inputs, w, acc); break;
            default: tile1(at, inputs, w, acc);
            }
            for (int r = 0; r < rows; r++) {
                float *to = y + (long)(i + r) * outputs + panel;
                v8 y0 = acc[2 * r] + b0, y1 = acc[2 * r + 1] + b1;
                store(to, add ? load(to) + y0 : y0);
                store(to + 8, add ? load(to + 8) + y1 : y1);
            }
            i += rows;
        }
    }
}

/* y = x / rms(x), times `scale` if given. */
INLINE void unit(const float *x, int size, float eps, const float *scale, float *y) {
    v8 sum = all(0.0f);
    for (int k = 0; k < size; k += 8) sum += load(x + k) * load(x + k);
    v8 factor = all(1.0f / sqrtf(total(sum) / (float)size + eps));
    for (int k = 0; k < size; k += 8) {
        v8 value = load(x + k) * factor;
        store(y + k, scale ? value * load(scale + k) : value);
    }
}

INLINE void rotate(float *x, int head_dim, const float *cos, const float *sin) {
    int half = head_dim / 2;
    for (int k = 0; k < half; k += 8) {
        v8 a = load(x + k), b = load(x + half + k), c = load(cos + k), s = load(sin + k);
        store(x + k, a * c - b * s);
        store(x + half + k, b * c + a * s);
    }
}

/* Attention of one query over `count` positions of one head; scores has room for length + 32. */
INLINE void attend(const float *q, const float *keys, const float *values, int head_dim, int count,
                   float *scores, float *out) {
    products(q, keys, head_dim, count, 1.0f / sqrtf((float)head_dim), scores);
    softmax(scores, count);
    mix(scores, values, head_dim, count, out);
}

static void attention(const Model *m, const Layer *w, int n, const int *rows, const int *positions,
                      float *qkv, float *scores, float *out) {
    int hd = m->head_dim, heads = m->q_heads + 2 * m->kv_heads, turned = m->q_heads + m->kv_heads;
    long head_size = (long)m->length * hd, row_size = m->kv_heads * head_size;
    for (int i = 0; i < n; i++) {
        int p = positions[i];
        float *entry = qkv + (long)i * heads * hd;
        for (int h = 0; h < turned; h++) {
            if (w->qk_norm) unit(entry + h * hd, hd, m->eps, w->qk_norm + h * hd, entry + h * hd);
            rotate(entry + h * hd, hd, m->cos + (long)p * hd / 2, m->sin + (long)p * hd / 2);
        }
        for (int h = 0; h < m->kv_heads; h++) {
            const float *key = entry + (m->q_heads + h) * hd, *value = entry + (turned + h) * hd;
            long head = rows[i] * row_size + h * head_size;
            put(key, hd, p, w->keys + head);
            memcpy(w->values + head + (long)p * hd, value, sizeof(float) * hd);
        }
    }
    for (int i = 0; i < n; i++)
        for (int h = 0; h < m->q_heads; h++) {
            long head = rows[i] * row_size + h * m->kv_heads / m->q_heads * head_size;
            const float *q = qkv + ((long)i * heads + h) * hd;
            float *to = out + ((long)i * m->q_heads + h) * hd;
            if (hd == 32) /* a constant, so that the loops are unrolled */
                attend(q, w->keys + head, w->values + head, 32, positions[i] + 1, scores, to);
            else
                attend(q, w->keys + head, w->values + head, hd, positions[i] + 1, scores, to);
        }
}

INLINE void gate(float *x, int n, int size) { /* x (n, 2 size) -> silu(first) * second, in place */
    for (int i = 0; i < n; i++)
        for (int k = 0; k < size; k += 8) {
            v8 g = load(x + (long)i * 2 * size + k), u = load(x + (long)i * 2 * size + size + k);
            v8 e = exp8(where(g < all(-80.0f), all(80.0f), -g));
            store(x + (long)i * size + k, g * u / (1.0f + e));
        }
}

/* Floats of work space that `forward` needs for n entries. */
long workspace(const Model *m, int n) {
    long heads = m->q_heads + 2 * m->kv_heads;
    return n * (2L * m->hidden + heads * m->head_dim + (long)m->q_heads * m->head_dim
                + 2L * m->feed_forward) + m->length + 32;
}

/* Run n tokens: run r are the next lengths[r] of them, at positions starts[r].. of row rows[r].
 * states (runs, hidden) receives the final-norm state at the end of each run; places has room for 2 n. */
void forward(const Model *m, int runs, const long *rows, const long *starts, const long *lengths,
             int n, const long *tokens, int *places, float *work, float *states) {
    int hidden = m->hidden, heads = m->q_heads + 2 * m->kv_heads, hd = m->head_dim;
    float *x = work, *normed = x + (long)n * hidden, *qkv = normed + (long)n * hidden;
    float *mixed = qkv + (long)n * heads * hd, *inner = mixed + (long)n * m->q_heads * hd;
    float *scores = inner + 2L * n * m->feed_forward;
    int *row_of = places, *position = places + n;
    for (int r = 0, i = 0; r < runs; r++)
        for (int k = 0; k < lengths[r]; k++, i++) row_of[i] = rows[r], position[i] = starts[r] + k;
    for (int i = 0; i < n; i++)
        memcpy(x + (long)i * hidden, m->embed + tokens[i] * hidden, sizeof(float) * hidden);
    for (int l = 0; l < m->layers; l++) {
        const Layer *w = m->layer + l;
        for (int i = 0; i < n; i++)
            unit(x + (long)i * hidden, hidden, m->eps, 0, normed + (long)i * hidden);
        linear(normed, n, hidden, w->qkv, w->qkv_bias, heads * hd, 0, qkv);
        attention(m, w, n, row_of, position, qkv, scores, mixed);
        linear(mixed, n, m->q_heads * hd, w->out, 0, hidden, 1, x);
        for (int i = 0; i < n; i++)
            unit(x + (long)i * hidden, hidden, m->eps, 0, normed + (long)i * hidden);
        linear(normed, n, hidden, w->gate_up, 0, 2 * m->feed_forward, 0, inner);
        gate(inner, n, m->feed_forward);
        linear(inner, n, m->feed_forward, w->down, 0, hidden, 1, x);
    }
    for (int r = 0, end = -1; r < runs; r++) {
        end += lengths[r];
        unit(x + (long)end * hidden, hidden, m->eps, m->norm, states + (long)r * hidden);
    }
}

/* logits (n, outputs) of states (n, hidden); `packed` as in `linear`. */
void project(const float *states, int n, int hidden, const float *packed, int outputs,
             float *logits) {
    linear(states, n, hidden, packed, 0, outputs, 0, logits);
}
