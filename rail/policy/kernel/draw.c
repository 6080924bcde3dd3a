/* Drawing one token from each row of logits: inverse of the cumulative distribution, exact top-p. */
#include <stdlib.h>

#include "vector.h"

typedef struct {
    float weight;
    int token;
} Candidate;

static int heavier_first(const void *left, const void *right) {
    const Candidate *a = left, *b = right;
    if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
    return a->token - b->token;
}

static double sum(const float *x, int n) {
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
    for (int k = 0; k < n; k += 4) s0 += x[k], s1 += x[k + 1], s2 += x[k + 2], s3 += x[k + 3];
    return (s0 + s1) + (s2 + s3);
}

/* Set to 0 what is outside the smallest set of heaviest tokens that reaches `share` of the mass. */
static void nucleus(float *weights, int n, float share, Candidate *candidates) {
    double mass = sum(weights, n), before = 0.0;
    float least = (float)((1.0 - share) * mass / n) * 0.999f; /* all below it miss the set together */
    int count = 0, kept = 0;
    for (int k = 0; k < n; k++)
        if (weights[k] >= least) candidates[count++] = (Candidate){weights[k], k};
    qsort(candidates, count, sizeof(Candidate), heavier_first);
    while (kept < count && before < share * mass) before += candidates[kept++].weight;
    memset(weights, 0, sizeof(float) * n);
    for (int k = 0; k < kept; k++) weights[candidates[k].token] = candidates[k].weight;
}

static int pick(const float *weights, int n, double target) {
    double reached = 0.0;
    int last = 0;
    for (int k = 0; k < n; k++) {
        if (weights[k] > 0.0f) last = k;
        reached += weights[k];
        if (reached > target) return k;
    }
    return last; /* the sums differ in their last bits */
}

/* weights (n) = exp((x - top) / temperature); n: multiple of 8. */
static void exponentials(const float *x, int n, float top, float temperature, float *weights) {
    v8 rate = all(1.0f / temperature), shift = all(top);
    for (int k = 0; k < n; k += 8) store(weights + k, exp8((load(x + k) - shift) * rate));
}

/* Floats of work space that `draw` needs for a vocabulary of n. */
long draw_workspace(int n) { return 3L * n; }

/* logits (count, width), the first `n` of each row tokens, width a multiple of 16; see draw.py for the
 * other arguments. Overwrites the logits past n. */
void draw(int count, int n, int width, float *logits, const double *uniforms,
          const float *temperature, const float *top_p, float *work, long *tokens, float *logprob,
          float *logprob_sampled, float *entropy) {
    float *weights = work;
    Candidate *candidates = (Candidate *)(work + width);
    for (int i = 0; i < count; i++) {
        float *x = logits + (long)i * width, top = x[0];
        int best = 0;
        for (int k = n; k < width; k++) x[k] = LOWEST;
        for (int k = 1; k < n; k++)
            if (x[k] > top) top = x[k], best = k;
        exponentials(x, width, top, 1.0f, weights);
        memset(weights + n, 0, sizeof(float) * (width - n));
        double mass = sum(weights, width), weighed = 0.0;
        v8 part = all(0.0f);
        for (int k = 0; k < width; k += 8) {
            v8 w = load(weights + k);
            part += where(w > all(0.0f), w * (load(x + k) - top), all(0.0f));
        }
        weighed = total(part);
        int token = best;
        logprob_sampled[i] = 0.0f;
        if (temperature[i] > 0.0f) {
            if (temperature[i] != 1.0f) {
                exponentials(x, width, top, temperature[i], weights);
                memset(weights + n, 0, sizeof(float) * (width - n));
            }
            if (top_p[i] < 1.0f) nucleus(weights, n, top_p[i], candidates);
            double sampled_mass = sum(weights, width);
            token = pick(weights, n, uniforms[i] * sampled_mass);
            logprob_sampled[i] = (float)log(weights[token] / sampled_mass);
        }
        tokens[i] = token;
        logprob[i] = (float)(x[token] - top - log(mass));
        entropy[i] = (float)(log(mass) - weighed / mass);
    }
}
