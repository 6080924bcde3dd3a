/* Runs each function of the kernel at the edges of its arrays; each array is its own allocation, so a
 * sanitizer sees a step over any edge. */
#include <stdio.h>

#include "decoder.c"
#include "draw.c"
#include "tree.c"

static unsigned state = 1;
static float uniform(void) {
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 16777216.0f;
}
static float *some(long count) {
    float *x = malloc(sizeof(float) * count);
    for (long k = 0; k < count; k++) x[k] = 0.4f * (uniform() - 0.5f);
    return x;
}
static double added(const float *x, long count) {
    double s = 0.0;
    for (long k = 0; k < count; k++) s += x[k];
    return s;
}

static double decode(int q_heads, int kv_heads, int hd, int length) {
    int hidden = 32, inner = 40, rows = 3, heads = q_heads + 2 * kv_heads;
    Layer layer = {some(heads * hd * hidden), some(heads * hd), some((q_heads + kv_heads) * hd),
                   some(hidden * q_heads * hd), some(2 * inner * hidden), some(hidden * inner),
                   some((long)rows * kv_heads * length * hd),
                   some((long)rows * kv_heads * length * hd)};
    Model m = {hidden, q_heads, kv_heads, hd, inner, 1, length, 1e-6f,
               some(20 * hidden), some(hidden), some((long)length * hd / 2),
               some((long)length * hd / 2), &layer};
    double seen = 0.0;
    for (int n = 1; n <= length; n += n == 1 ? 6 : length - 7) { /* 1, 7 and all positions */
        int *places = malloc(sizeof(int) * 2 * n);
        long *ids = calloc(n, sizeof(long)), runs[6] = {rows - 1, 0, length - n + n / 2, 0, n - n / 2, n / 2};
        for (int i = 0; i < n; i++) ids[i] = i % 20;
        float *work = malloc(sizeof(float) * workspace(&m, n)), *out = some(2 * hidden);
        /* n / 2 is 0 for one token: then one run only */
        forward(&m, 1 + (n > 1), runs, runs + 2, runs + 4, n, ids, places, work, out);
        float *packed = some(48 * hidden), *logits = some(2 * 48);
        project(out, 2, hidden, packed, 48, logits);
        seen += added(out, 2 * hidden) + added(logits, 96);
        free(ids), free(places), free(work), free(out), free(packed), free(logits);
    }
    return seen;
}

static double draws(int n) {
    int width = (n + 15) / 16 * 16, count = 5;
    float *logits = some((long)count * width), *work = malloc(sizeof(float) * draw_workspace(width));
    float temperature[] = {0.0f, 1.0f, 0.6f, 1.25f, 3.0f}, top_p[] = {1.0f, 1.0f, 0.95f, 0.01f, 0.9f};
    double uniforms[] = {0.0, 0.999999999999, 0.5, 0.3, 0.9999999};
    long *tokens = malloc(sizeof(long) * count);
    float *figures = malloc(sizeof(float) * 3 * count);
    draw(count, n, width, logits, uniforms, temperature, top_p, work, tokens, figures,
         figures + count, figures + 2 * count);
    double seen = added(figures, 3 * count);
    for (int i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= n) exit(3);
    free(logits), free(work), free(tokens), free(figures);
    return seen;
}

static double tree(int q_heads, int kv_heads, int size) {
    int positions[] = {0, 1, 2, 3, 2, 3, 4, 0, 1, 1, 2}, nodes = 11;
    int *kept = malloc(sizeof positions);
    memcpy(kept, positions, sizeof positions);
    Tree t = {nodes, q_heads, kv_heads, size, 32, 0.3f, kept};
    long many = (long)q_heads * nodes * size, few = (long)kv_heads * nodes * size;
    float *q = some(many), *k = some(few), *v = some(few), *grad = some(many), *out = some(many);
    float *dq = some(many), *dk = some(few), *dv = some(few);
    float *work = malloc(sizeof(float) * tree_workspace(&t));
    tree_forward(&t, q, k, v, work, out);
    tree_backward(&t, q, k, v, grad, work, dq, dk, dv);
    double seen = added(out, many) + added(dq, many) + added(dk, few) + added(dv, few);
    free(kept), free(q), free(k), free(v), free(grad), free(out), free(dq), free(dk), free(dv);
    free(work);
    return seen;
}

int main(void) {
    double seen = decode(4, 2, 16, 64) + decode(2, 2, 32, 32) + draws(1) + draws(611) + draws(16);
    seen += tree(4, 2, 16) + tree(2, 2, 32);
    printf("finite sum %g\n", seen);
    return seen == seen && seen < 1e30 && seen > -1e30 ? 0 : 2;
}
