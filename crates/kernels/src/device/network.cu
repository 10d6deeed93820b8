// The kernels of a network, after prelude.cu: batches, activations, losses, sums. Each thread computes its outputs alone.
//
// Arrays are row-major, [C, ...] has one part per chain; C is `chains` and goes over the grid's y unless a comment says otherwise.
// Parameters and gradients of chain c begin at c·stride floats. Every function says after "x:" what the threads in x count.
// A `double` travels as the 64 bits of a Long.

// ---- Batches

// Row numbers of a minibatch [C, m] below n, as Stream::indices draws them; one stream per chain. x: fours of m.
extern "C" __global__ void draw_indices(unsigned n, int m, const Stream *streams, int chains, unsigned *out) {
    long long four = THREAD;
    if (4 * four >= m) return;
    for_each_chain(chain, chains) {
        const Stream *s = streams + chain;
        unsigned c[4] = {(unsigned)four, s->high[0], s->high[1], s->high[2]};
        philox4x32_10(c, s->key[0], s->key[1]);
        for (int k = 0; k < 4 && 4 * four + k < m; k++)
            out[(long long)chain * m + 4 * four + k] = (unsigned)(((unsigned long long)c[k] * n) >> 32);
    }
}

// A good hash of a word, as rng::scramble.
__device__ static unsigned scramble(unsigned x) {
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}

// Row numbers of a minibatch [C, m] below n, all different, as Stream::subset draws them; one stream per chain. x: m.
extern "C" __global__ void draw_subset(unsigned n, int m, const Stream *streams, int chains, unsigned *out) {
    long long j = THREAD;
    if (j >= m) return;
    int bits = 2;
    while (bits < 32 && (n - 1) >> bits) bits++;
    int width[2] = {bits / 2, bits - bits / 2};
    for_each_chain(chain, chains) {
        const Stream *s = streams + chain;
        unsigned key[2][4];
        for (int b = 0; b < 2; b++) {
            key[b][0] = b;
            for (int k = 0; k < 3; k++) key[b][k + 1] = s->high[k];
            philox4x32_10(key[b], s->key[0], s->key[1]);
        }
        unsigned x = (unsigned)j;
        do {
            for (int round = 0; round < 8; round++) {
                int low = width[round % 2], high = width[1 - round % 2];
                unsigned right = x & ((1u << low) - 1), left = x >> low;
                unsigned mixed = left ^ (scramble(right ^ key[round / 4][round % 4]) & ((1u << high) - 1));
                x = right << high | mixed;
            }
        } while (x >= n);
        out[(long long)chain * m + j] = x;
    }
}

// Rows of data [.., dim] with these numbers, those of each chain `apart` from those of the last, to out [C, rows, dim]: inputs, or target values.
// x: rows·dim.
extern "C" __global__ void gather_f32(
    const float *data, int dim, const unsigned *numbers, int apart, int chains, int rows, float *out) {
    long long i = THREAD, n = (long long)rows * dim;
    if (i >= n) return;
    long long row = quotient(i, dim), k = i - row * dim;
    for_each_chain(chain, chains) out[chain * n + i] = data[(long long)numbers[(long long)chain * apart + row] * dim + k];
}

// gather_f32 from bytes. x: rows·dim.
extern "C" __global__ void gather_i8(
    const signed char *data, int dim, const unsigned *numbers, int apart, int chains, int rows, float *out) {
    long long i = THREAD, n = (long long)rows * dim;
    if (i >= n) return;
    long long row = quotient(i, dim), k = i - row * dim;
    for_each_chain(chain, chains) out[chain * n + i] = (float)data[(long long)numbers[(long long)chain * apart + row] * dim + k];
}

// gather_f32 of labels, `dim` for each row. x: rows·dim.
extern "C" __global__ void gather_labels(
    const Label *data, int dim, const unsigned *numbers, int apart, int chains, int rows, Label *out) {
    long long i = THREAD, n = (long long)rows * dim;
    if (i >= n) return;
    long long row = quotient(i, dim), k = i - row * dim;
    for_each_chain(chain, chains) out[chain * n + i] = data[(long long)numbers[(long long)chain * apart + row] * dim + k];
}

// The same `rows` rows of data [.., dim] from row `start` on, to every chain of out [C, rows, dim]: inputs, or target values.
// x: rows·dim.
extern "C" __global__ void copy_rows_f32(const float *data, int dim, long long start, int chains, int rows, float *out) {
    long long i = THREAD, n = (long long)rows * dim;
    if (i >= n) return;
    float x = data[start * dim + i];
    for_each_chain(chain, chains) out[chain * n + i] = x;
}

// copy_rows_f32 from bytes. x: rows·dim.
extern "C" __global__ void copy_rows_i8(const signed char *data, int dim, long long start, int chains, int rows, float *out) {
    long long i = THREAD, n = (long long)rows * dim;
    if (i >= n) return;
    float x = (float)data[start * dim + i];
    for_each_chain(chain, chains) out[chain * n + i] = x;
}

// copy_rows_f32 of labels, `dim` for each row. x: rows·dim.
extern "C" __global__ void copy_labels(
    const Label *data, int dim, long long start, int chains, int rows, Label *out) {
    long long i = THREAD, n = (long long)rows * dim;
    if (i >= n) return;
    Label label = data[start * dim + i];
    for_each_chain(chain, chains) out[chain * n + i] = label;
}

// ---- Layers

// Activations, in the order of kernels::elementwise::Activation.
enum { RELU, TANH, LOGISTIC, GELU, IDENTITY };

__device__ inline float normal_cdf(float x) {
    return 0.5f * erfcf(-x * 0.707106781f);
}

// z <- f(z + bias), z [C, rows, columns]; the bias of chain c is at params + c·stride + bias, bias -1 is none. `before`, unless it
// is null, gets z + bias. x: rows·columns.
extern "C" __global__ void bias_activation(
    float *z, int chains, int rows, int columns, const float *params, long long stride, long long bias, int kind, float *before) {
    long long i = THREAD, n = (long long)rows * columns;
    if (i >= n) return;
    long long column = i - quotient(i, columns) * columns;
    for_each_chain(chain, chains) {
        long long at = chain * n + i;
        float x = z[at];
        if (bias >= 0) x += params[chain * stride + bias + column];
        if (before) before[at] = x;
        switch (kind) {
            case RELU: x = x < 0.0f ? 0.0f : x; break;
            case TANH: x = tanh32(x); break;
            case LOGISTIC: x = logistic32(x); break;
            case GELU: x *= normal_cdf(x); break;
        }
        z[at] = x;
    }
}

// delta <- delta·f', delta [C, rows, columns], from the output `a` and for GELU the input `before` (else it may be null).
// x: rows·columns.
extern "C" __global__ void times_derivative(
    float *delta, int chains, int rows, int columns, const float *a, const float *before, int kind) {
    long long i = THREAD, n = (long long)rows * columns;
    if (i >= n) return;
    for_each_chain(chain, chains) {
        long long at = chain * n + i;
        switch (kind) {
            // Not a > 0: a NaN must stay visible.
            case RELU: if (a[at] <= 0.0f) delta[at] = 0.0f; break;
            case TANH: delta[at] *= 1.0f - a[at] * a[at]; break;
            case LOGISTIC: delta[at] *= a[at] * (1.0f - a[at]); break;
            case GELU: {
                float x = before[at];
                delta[at] *= normal_cdf(x) + x * (0.3989423f * expf(-0.5f * x * x));
                break;
            }
        }
    }
}

// ---- Losses

// Each row has `positions` of them, which count 1/positions; its weight [C, rows], unless weights are null, multiplies its loss and its delta.

__device__ inline float weight_of(const float *weights, long long at, int positions) {
    return weights ? weights[quotient(at, positions)] : 1.0f;
}

// Cross-entropy of outputs [C, n, columns] and labels [C, n], n = rows·positions: the loss and the errors (0 or 1) of each [C, n], and
// dLoss/dOutput of the sum unless `delta` is null. x: n.
extern "C" __global__ void cross_entropy(
    const float *outputs, int chains, int n, int columns, int positions, const Label *labels, const float *weights,
    float *delta, double *loss, unsigned *wrong) {
    long long i = THREAD;
    if (i >= n) return;
    float share = 1.0f / (float)positions;
    for_each_chain(chain, chains) {
        long long at = (long long)chain * n + i;
        const float *z = outputs + at * columns;
        int label = labels[at];
        float most = float_of(0xff800000u), weight = weight_of(weights, at, positions);  // -infinity
        for (int k = 0; k < columns; k++) most = choose(z[k] > most, z[k], most);
        float sum = 0.0f;
        for (int k = 0; k < columns; k++) {
            float e = exp32(z[k] - most);
            if (delta) delta[at * columns + k] = e;
            sum += e;
        }
        if (delta) {
            float inverse = share / sum;
            for (int k = 0; k < columns; k++) delta[at * columns + k] *= inverse;
            delta[at * columns + label] -= share;
            if (weights)
                for (int k = 0; k < columns; k++) delta[at * columns + k] *= weight;
        }
        loss[at] = ((double)most + log((double)sum) - (double)z[label]) * (double)weight;
        wrong[at] = argmax(z, columns) != label;
    }
}

// Squared error of outputs [C, n, columns] and values of the same shape; results as of cross_entropy, no row is wrong. x: n.
extern "C" __global__ void squared_error_values(
    const float *outputs, int chains, int n, int columns, int positions, const float *values, const float *weights,
    float *delta, double *loss, unsigned *wrong) {
    long long i = THREAD;
    if (i >= n) return;
    for_each_chain(chain, chains) {
        long long at = (long long)chain * n + i;
        float weight = weight_of(weights, at, positions);
        double sum = 0.0;
        for (long long k = at * columns; k < (at + 1) * columns; k++) {
            float difference = outputs[k] - values[k];
            sum += (double)difference * (double)difference;
            if (delta) delta[k] = 2.0f * difference * weight;
        }
        loss[at] = sum * (double)weight;
        wrong[at] = 0;
    }
}

// Squared error of outputs [C, n, columns] and labels [C, n], 1 at the label and 0 elsewhere; results as of cross_entropy.
// x: n.
extern "C" __global__ void squared_error_classes(
    const float *outputs, int chains, int n, int columns, int positions, const Label *labels, const float *weights,
    float *delta, double *loss, unsigned *wrong) {
    long long i = THREAD;
    if (i >= n) return;
    for_each_chain(chain, chains) {
        long long at = (long long)chain * n + i;
        const float *z = outputs + at * columns;
        int label = labels[at];
        float weight = weight_of(weights, at, positions);
        float scale = 2.0f / (float)positions * weight;
        double sum = 0.0;
        for (int k = 0; k < columns; k++) {
            float difference = z[k] - (k == label ? 1.0f : 0.0f);
            sum += (double)difference * (double)difference;
            if (delta) delta[at * columns + k] = scale * difference;
        }
        loss[at] = sum * (double)weight;
        wrong[at] = argmax(z, columns) != label;
    }
}

// gradient[k] += the sums over n of slopes [C, n, count] of a loss's own parameters. x: count.
extern "C" __global__ void add_slopes(const double *slopes, int chains, int n, int count, float *gradient, long long stride) {
    long long k = THREAD;
    if (k >= count) return;
    for_each_chain(chain, chains) {
        double sum = 0.0;
        for (long long i = 0; i < n; i++) sum += slopes[((long long)chain * n + i) * count + k];
        gradient[chain * stride + k] += (float)sum;
    }
}

// ---- Parameters

// gradient <- scale·gradient + precision·(w - centre) for the n parameters of each chain; a null centre [n] is the origin. Chains may have
// precisions of their own. x: n.
extern "C" __global__ void scale_and_pull(
    float *gradient, const float *params, int chains, long long n, long long stride,
    float scale, float precision, const float *precisions, const float *centre) {
    long long i = THREAD;
    if (i >= n) return;
    float c = centre ? centre[i] : 0.0f;
    for_each_chain(chain, chains) {
        long long at = chain * stride + i;
        // Scaled by 0, what was there does not matter, not even NaN.
        float own = scale != 0.0f ? scale * gradient[at] : 0.0f;
        gradient[at] = own + (precisions ? precisions[chain] : precision) * (params[at] - c);
    }
}

// Parameters start..start+length of each chain that crossed a wall at ±half go back into the box; their momenta, unless null, turn
// round. As PriorEnergy::reflect. x: length.
extern "C" __global__ void reflect(
    float *params, float *momentum, int chains, long long stride, long long start, long long length, float half) {
    long long i = THREAD;
    if (i >= length) return;
    double h = (double)half;
    float limit = float_of(bits_of(half) - 1u);  // the next float below
    for_each_chain(chain, chains) {
        long long at = chain * stride + start + i;
        double x = (double)params[at];
        if (fabs(x) < h || x != x) continue;
        double phase = fmod(x + h, 4.0 * h);
        if (phase < 0.0) phase += 4.0 * h;
        bool mirrored = phase >= 2.0 * h;
        float inside = (float)(mirrored ? 3.0 * h - phase : phase - h);
        // Comparisons that fail for NaN, which infinity gives and the caller finds.
        inside = inside > limit ? limit : inside;
        params[at] = inside < -limit ? -limit : inside;
        if (momentum && mirrored) momentum[at] = -momentum[at];
    }
}

// to <- from for the chains of which `which` [C] is not 0; both [C, n]. x: n.
extern "C" __global__ void copy_where(const float *from, float *to, long long n, int chains, const unsigned char *which) {
    long long i = THREAD;
    if (i >= n) return;
    for_each_chain(chain, chains)
        if (which[chain]) to[chain * n + i] = from[chain * n + i];
}

// n parameters of each chain to other vectors. x: n.
extern "C" __global__ void copy_part(
    const float *from, long long from_chain, float *to, long long to_chain, int chains, long long n) {
    long long i = THREAD;
    if (i >= n) return;
    for_each_chain(chain, chains) to[chain * to_chain + i] = from[chain * from_chain + i];
}

// to of each chain <- from of one chain minus from of another; of [C, 2] has their numbers, -1 counts 0. Both [C, n]. x: n.
extern "C" __global__ void difference(const float *from, float *to, long long n, int chains, const int *of) {
    long long i = THREAD;
    if (i >= n) return;
    for_each_chain(chain, chains) {
        int plus = of[2 * chain], minus = of[2 * chain + 1];
        to[chain * n + i] = (plus < 0 ? 0.0f : from[plus * n + i]) - (minus < 0 ? 0.0f : from[minus * n + i]);
    }
}

// to_i <- from_{i+1} - from_{i-1}, cyclic; as Engine::rotate for one and two elements. Both [C, n]. x: n.
extern "C" __global__ void rotate(const float *from, float *to, long long n, int chains) {
    long long i = THREAD;
    if (i >= n) return;
    for_each_chain(chain, chains) {
        const float *x = from + chain * n;
        float next = x[i + 1 < n ? i + 1 : 0], previous = x[i ? i - 1 : n - 1];
        to[chain * n + i] = n == 1 ? 0.0f : n == 2 ? (i ? -previous : next) : next - previous;
    }
}

// out <- value. x: n; one row.
extern "C" __global__ void fill(float *out, long long n, float value) {
    long long i = THREAD;
    if (i < n) out[i] = value;
}

// ---- Sums, in an order that depends on the sizes only

// First stage: partials[c, p] = in[c, p] + in[c, p + parts] + ..., in [C, rows] and partials [C, parts]. x: parts.
extern "C" __global__ void partial_sums(const double *in, int chains, int rows, int parts, double *partials) {
    long long part = THREAD;
    if (part >= parts) return;
    for_each_chain(chain, chains) {
        double sum = 0.0;
        for (long long row = part; row < rows; row += parts) sum += in[(long long)chain * rows + row];
        partials[(long long)chain * parts + part] = sum;
    }
}

// partial_sums of counts. x: parts.
extern "C" __global__ void partial_counts(const unsigned *in, int chains, int rows, int parts, double *partials) {
    long long part = THREAD;
    if (part >= parts) return;
    for_each_chain(chain, chains) {
        double sum = 0.0;
        for (long long row = part; row < rows; row += parts) sum += (double)in[(long long)chain * rows + row];
        partials[(long long)chain * parts + part] = sum;
    }
}

// Second stage: out[c·stride] = factor·(the sum of chain c's partials [C, parts], in order), or is increased by it. The first step at which
// that was not finite is kept in broken[c], where 0 means none; broken may be null.
// x: chains; one row.
extern "C" __global__ void finish_sums(
    const double *partials, int chains, int parts, double *out, long long stride, double factor, int add,
    long long step, long long *broken) {
    long long chain = THREAD;
    if (chain >= chains) return;
    double sum = 0.0;
    for (int part = 0; part < parts; part++) sum += partials[chain * parts + part];
    out[chain * stride] = add ? out[chain * stride] + factor * sum : factor * sum;
    if (broken && sum - sum != 0.0 && broken[chain] == 0) broken[chain] = step;
}

// Second stage of a sum that is a slope: out[c·stride] is increased by the sum of chain c's partials [C, parts], in order. x: chains; one row.
extern "C" __global__ void add_sums(const double *partials, int chains, int parts, float *out, long long stride) {
    long long chain = THREAD;
    if (chain >= chains) return;
    double sum = 0.0;
    for (int part = 0; part < parts; part++) sum += partials[chain * parts + part];
    out[chain * stride] += (float)sum;
}

// First stage of Σ (w - centre)² of w [C, n]; a null centre [n] is the origin. x: parts.
extern "C" __global__ void partial_squares(
    const float *w, int chains, long long n, const float *centre, int parts, double *partials) {
    long long part = THREAD;
    if (part >= parts) return;
    for_each_chain(chain, chains) {
        double sum = 0.0;
        for (long long i = part; i < n; i += parts) {
            double d = (double)w[chain * n + i] - (centre ? (double)centre[i] : 0.0);
            sum += d * d;
        }
        partials[(long long)chain * parts + part] = sum;
    }
}

// First stage of a sum that is infinite if one of the parameters start..start+length of w [C, n] is not within its wall at ±half, 0 if not.
// x: parts.
extern "C" __global__ void partial_walls(
    const float *w, int chains, long long n, long long start, long long length, float half, int parts, double *partials) {
    long long part = THREAD;
    if (part >= parts) return;
    for_each_chain(chain, chains) {
        double sum = 0.0;
        for (long long i = part; i < length; i += parts)
            if (fabsf(w[chain * n + start + i]) >= half) sum = (double)float_of(0x7f800000u);
        partials[(long long)chain * parts + part] = sum;
    }
}
