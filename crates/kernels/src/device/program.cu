// The kernels of compiled graphs that are the same for all of them, after prelude.cu. Each thread computes its outputs alone.
//
// Arrays are row-major and have a part per chain, `…_chain` floats apart, which goes over the grid's y; within it rows, `…_row` floats apart where
// rows may be the same ones (0). `add` says whether to add to what is there. Every function says after "x:" what the threads in x count.

// out[e] <- x[list[e]], or `fill` where the list says nowhere. x: rows·width.
extern "C" __global__ void take_listed(
    const float *x, long long x_chain, long long x_row, int chains, int rows, int width, const unsigned *list, float fill,
    float *out, long long out_chain) {
    long long i = THREAD;
    if (i >= (long long)rows * width) return;
    long long row = quotient(i, width);
    unsigned from = list[i - row * width];
    for_each_chain(chain, chains)
        out[chain * out_chain + i] = from == 0xffffffffu ? fill : x[chain * x_chain + row * x_row + from];
}

// Runs of an operand to their places between those of others: run o of a row to out[o·whole + before ..]. x: rows·outer·run.
extern "C" __global__ void copy_runs(
    const float *x, long long x_chain, long long x_row, int chains, int rows, int outer, int run, int whole, int before,
    float *out, long long out_chain) {
    long long i = THREAD, width = (long long)outer * run;
    if (i >= rows * width) return;
    long long row = quotient(i, (int)width), e = i - row * width, o = quotient(e, run);
    long long to = (row * outer + o) * whole + before + (e - o * run);
    for_each_chain(chain, chains) out[chain * out_chain + to] = x[chain * x_chain + row * x_row + e];
}

// What becomes of an axis, in the order of tensor::Reduce.
enum { REDUCE_SUM, REDUCE_MAX, REDUCE_MIN };

static __device__ double reduce_two(int how, double y, double v) {
    if (how == REDUCE_SUM) return y + v;
    return (how == REDUCE_MAX ? v > y : v < y) || v != v ? v : y;
}

// [pages, m, inner] to [pages, inner]. x: pages·inner.
extern "C" __global__ void reduce_axis(
    const float *x, long long x_chain, int chains, int pages, int m, int inner, int how, float *out, long long out_chain) {
    long long i = THREAD;
    if (i >= (long long)pages * inner) return;
    long long page = quotient(i, inner);
    for_each_chain(chain, chains) {
        const float *z = x + chain * x_chain + page * m * inner + (i - page * inner);
        double y = z[0];
        for (int k = 1; k < m; k++) y = reduce_two(how, y, z[(long long)k * inner]);
        out[chain * out_chain + i] = (float)y;
    }
}

// The same of a long axis, [pages, m] to [pages], in so many parts first. x: pages·parts.
extern "C" __global__ void reduce_parts(
    const float *x, long long x_chain, int chains, int pages, int m, int parts, int how, double *out) {
    long long i = THREAD, all = (long long)pages * parts;
    if (i >= all) return;
    long long page = quotient(i, parts), part = i - page * parts;
    for_each_chain(chain, chains) {
        const float *z = x + chain * x_chain + page * m;
        double y = z[part];
        for (long long k = part + parts; k < m; k += parts) y = reduce_two(how, y, z[k]);
        out[chain * all + i] = y;
    }
}

// Then the parts. x: pages.
extern "C" __global__ void reduce_rest(
    const double *x, int chains, int pages, int parts, int how, float *out, long long out_chain) {
    long long page = THREAD;
    if (page >= pages) return;
    for_each_chain(chain, chains) {
        const double *z = x + ((long long)chain * pages + page) * parts;
        double y = z[0];
        for (int k = 1; k < parts; k++) y = reduce_two(how, y, z[k]);
        out[chain * out_chain + page] = (float)y;
    }
}

// The gradient of a sum along an axis goes to all of it. x: pages·m·inner.
extern "C" __global__ void reduce_sum_slopes(
    const float *d, long long d_chain, int chains, int pages, int m, int inner, float *target, long long t_chain, int add) {
    long long i = THREAD;
    if (i >= (long long)pages * m * inner) return;
    long long page = quotient(i, m * inner), from = page * inner + (i - page * m * inner) % inner;
    for_each_chain(chain, chains) {
        float *out = target + chain * t_chain + i;
        float slope = d[chain * d_chain + from];
        *out = add ? *out + slope : slope;
    }
}

// That of the largest or smallest, y, is shared by those that are equal to it. x: pages·inner.
extern "C" __global__ void reduce_pick_slopes(
    const float *x, long long x_chain, const float *y, long long y_chain, const float *d, long long d_chain, int chains, int pages,
    int m, int inner, float *target, long long t_chain, int add) {
    long long i = THREAD;
    if (i >= (long long)pages * inner) return;
    long long page = quotient(i, inner), at = page * m * inner + (i - page * inner);
    for_each_chain(chain, chains) {
        const float *z = x + chain * x_chain + at;
        float *out = target + chain * t_chain + at;
        float best = y[chain * y_chain + i];
        int equal = 0;
        for (int k = 0; k < m; k++) equal += z[(long long)k * inner] == best;
        float share = d[chain * d_chain + i] / (float)equal;
        for (int k = 0; k < m; k++) {
            long long j = (long long)k * inner;
            float slope = z[j] == best ? share : 0.0f;
            out[j] = add ? out[j] + slope : slope;
        }
    }
}

// Softmax over the middle of [pages, m, inner], or its logarithm. x: pages·inner.
extern "C" __global__ void softmax_axis(
    const float *x, long long x_chain, int chains, int pages, int m, int inner, int logarithm, float *out, long long out_chain) {
    long long i = THREAD;
    if (i >= (long long)pages * inner) return;
    long long page = quotient(i, inner), at = page * m * inner + (i - page * inner);
    for_each_chain(chain, chains) {
        const float *z = x + chain * x_chain + at;
        float *y = out + chain * out_chain + at;
        float most = float_of(0xff800000u), sum = 0.0f;
        for (int k = 0; k < m; k++) {
            float v = z[(long long)k * inner];
            most = v > most ? v : most;
        }
        for (int k = 0; k < m; k++) {
            long long j = (long long)k * inner;
            float e = exp32(z[j] - most);
            sum += e;
            y[j] = logarithm ? z[j] - most : e;
        }
        float shift = logarithm ? ln32(sum) : 0.0f, scale = logarithm ? 1.0f : 1.0f / sum;
        for (int k = 0; k < m; k++) {
            long long j = (long long)k * inner;
            y[j] = (y[j] - shift) * scale;
        }
    }
}

// Its gradient, from what came out. x: pages·inner.
extern "C" __global__ void softmax_slopes(
    const float *y, long long y_chain, const float *d, long long d_chain, int chains, int pages, int m, int inner, int logarithm,
    float *target, long long t_chain, int add) {
    long long i = THREAD;
    if (i >= (long long)pages * inner) return;
    long long page = quotient(i, inner), at = page * m * inner + (i - page * inner);
    for_each_chain(chain, chains) {
        const float *p = y + chain * y_chain + at, *e = d + chain * d_chain + at;
        float *out = target + chain * t_chain + at;
        float sum = 0.0f;
        for (int k = 0; k < m; k++) {
            long long j = (long long)k * inner;
            sum += logarithm ? e[j] : p[j] * e[j];
        }
        for (int k = 0; k < m; k++) {
            long long j = (long long)k * inner;
            float slope = logarithm ? e[j] - exp32(p[j]) * sum : p[j] * (e[j] - sum);
            out[j] = add ? out[j] + slope : slope;
        }
    }
}

// out <- the sums over the middle of [rows, parts, width]. x: rows·width.
extern "C" __global__ void sum_parts(
    const float *in, int chains, int rows, int width, int parts, float *out, long long out_chain, long long out_row, int add) {
    long long i = THREAD;
    if (i >= (long long)rows * width) return;
    long long row = quotient(i, width), e = i - row * width;
    for_each_chain(chain, chains) {
        const float *x = in + ((long long)chain * rows + row) * parts * width + e;
        float *y = out + chain * out_chain + row * out_row + e;
        double sum = 0.0;
        for (int part = 0; part < parts; part++) sum += (double)x[(long long)part * width];
        *y = add ? *y + (float)sum : (float)sum;
    }
}

// ---- Norms: groups of `size` neighbours

// Mean (0 without `centre`) and 1/sqrt(variance + epsilon) of each group. x: groups of all rows.
extern "C" __global__ void norm_moments(
    const float *x, long long x_chain, int chains, int groups, int size, int centre, float epsilon, float *moments) {
    long long i = THREAD;
    if (i >= groups) return;
    for_each_chain(chain, chains) {
        const float *z = x + chain * x_chain + i * size;
        double sum = 0.0, squares = 0.0;
        if (centre)
            for (int k = 0; k < size; k++) sum += (double)z[k];
        float mean = (float)(sum / size);
        for (int k = 0; k < size; k++) squares += (double)((z[k] - mean) * (z[k] - mean));
        float *out = moments + 2 * ((long long)chain * groups + i);
        out[0] = mean;
        out[1] = 1.0f / sqrtf((float)(squares / size) + epsilon);
    }
}

// (x - mean)/deviation·weight + bias; the channel of number e of a row is e/inner, counted from 0 again after `channels`; weights and biases may
// be null. x: numbers of all rows.
extern "C" __global__ void norm_values(
    const float *x, long long x_chain, int chains, int rows, int width, int size, const float *moments, const float *weight,
    long long w_chain, const float *bias, long long b_chain, int channels, int inner, float *out, long long out_chain) {
    long long i = THREAD, n = (long long)rows * width;
    if (i >= n) return;
    int e = (int)(i - quotient(i, width) * width);
    int channel = weight ? e / inner % channels : 0;
    for_each_chain(chain, chains) {
        const float *of = moments + 2 * (chain * (n / size) + quotient(i, size));
        float y = (x[chain * x_chain + i] - of[0]) * of[1];
        if (weight) y *= weight[chain * w_chain + channel];
        if (bias) y += bias[chain * b_chain + channel];
        out[chain * out_chain + i] = y;
    }
}

// Means over a group of the gradient with respect to what has mean 0 (0 without `centre`), and of its product with that. x: groups of all rows.
extern "C" __global__ void norm_sums(
    const float *x, long long x_chain, const float *d, long long d_chain, int chains, int groups, int width, int size, int centre,
    const float *moments, const float *weight, long long w_chain, int channels, int inner, float *sums) {
    long long i = THREAD;
    if (i >= groups) return;
    int first = (int)((i * size) % width);
    for_each_chain(chain, chains) {
        const float *z = x + chain * x_chain + i * size, *slope = d + chain * d_chain + i * size;
        const float *of = moments + 2 * ((long long)chain * groups + i);
        double shift = 0.0, along = 0.0;
        for (int k = 0; k < size; k++) {
            float s = slope[k];
            if (weight) s *= weight[chain * w_chain + (first + k) / inner % channels];
            shift += (double)s;
            along += (double)(s * ((z[k] - of[0]) * of[1]));
        }
        float *out = sums + 2 * ((long long)chain * groups + i);
        out[0] = centre ? (float)(shift / size) : 0.0f;
        out[1] = (float)(along / size);
    }
}

// The gradient with respect to x. x: numbers of all rows.
extern "C" __global__ void norm_slopes(
    const float *x, long long x_chain, const float *d, long long d_chain, int chains, int rows, int width, int size, const float *moments,
    const float *sums, const float *weight, long long w_chain, int channels, int inner, float *target, long long t_chain, int add) {
    long long i = THREAD, n = (long long)rows * width;
    if (i >= n) return;
    int e = (int)(i - quotient(i, width) * width);
    int channel = weight ? e / inner % channels : 0;
    for_each_chain(chain, chains) {
        long long group = 2 * (chain * (n / size) + quotient(i, size));
        float mean = moments[group], inverse = moments[group + 1], s = d[chain * d_chain + i];
        if (weight) s *= weight[chain * w_chain + channel];
        float slope = inverse * (s - sums[group] - (x[chain * x_chain + i] - mean) * inverse * sums[group + 1]);
        float *out = target + chain * t_chain + i;
        *out = add ? *out + slope : slope;
    }
}

// Of each number, the term of the gradient with respect to its weight. x: numbers of all rows.
extern "C" __global__ void norm_terms(
    const float *x, long long x_chain, const float *d, long long d_chain, int chains, int rows, int width, int size, const float *moments,
    float *out) {
    long long i = THREAD, n = (long long)rows * width;
    if (i >= n) return;
    for_each_chain(chain, chains) {
        const float *of = moments + 2 * (chain * (n / size) + quotient(i, size));
        out[chain * n + i] = d[chain * d_chain + i] * ((x[chain * x_chain + i] - of[0]) * of[1]);
    }
}

// out [rows, lines, length] += a number per line. x: rows·lines·length.
extern "C" __global__ void add_to_lines(
    float *out, long long out_chain, int chains, int rows, int lines, int length, const float *numbers, long long n_chain) {
    long long i = THREAD;
    if (i >= (long long)rows * lines * length) return;
    long long line = quotient(i, length) % lines;
    for_each_chain(chain, chains) out[chain * out_chain + i] += numbers[chain * n_chain + line];
}

// ---- Tables

// Rows of a table [words, width] that numbers name, NaN where there is none. x: rows·numbers·width.
extern "C" __global__ void embed_rows(
    const float *x, long long x_chain, long long x_row, const float *table, long long table_chain, int chains, int rows, int numbers,
    int words, int width, float *out, long long out_chain) {
    long long i = THREAD, line = (long long)numbers * width;
    if (i >= rows * line) return;
    long long token = quotient(i, width), column = i - token * width, row = quotient(token, numbers);
    for_each_chain(chain, chains) {
        float number = x[chain * x_chain + row * x_row + (token - row * numbers)];
        bool known = number >= 0.0f && number < (float)words;
        float y = float_of(0x7fc00000u);
        if (known) y = table[chain * table_chain + (long long)(unsigned)number * width + column];
        out[chain * out_chain + i] = y;
    }
}

// How often each word is named. x: words.
extern "C" __global__ void embed_count(
    const float *x, long long x_chain, long long x_row, int chains, int rows, int numbers, int words, unsigned *starts) {
    long long word = THREAD;
    if (word >= words) return;
    for_each_chain(chain, chains) {
        unsigned count = 0;
        for (int row = 0; row < rows; row++) {
            const float *line = x + chain * x_chain + row * x_row;
            for (int k = 0; k < numbers; k++) count += line[k] >= 0.0f && (long long)line[k] == word;
        }
        starts[(long long)chain * (words + 1) + word + 1] = count;
    }
}

// From counts to where the places of each word begin. x: 1.
extern "C" __global__ void embed_starts(int chains, int words, unsigned *starts) {
    if (THREAD > 0) return;
    for_each_chain(chain, chains) {
        unsigned *at = starts + (long long)chain * (words + 1);
        at[0] = 0;
        for (int word = 0; word < words; word++) at[word + 1] += at[word];
    }
}

// The places where each word is named, in their order. x: words.
extern "C" __global__ void embed_places(
    const float *x, long long x_chain, long long x_row, int chains, int rows, int numbers, int words, const unsigned *starts,
    unsigned *places) {
    long long word = THREAD;
    if (word >= words) return;
    for_each_chain(chain, chains) {
        unsigned *to = places + (long long)chain * rows * numbers + starts[(long long)chain * (words + 1) + word];
        for (int row = 0; row < rows; row++) {
            const float *line = x + chain * x_chain + row * x_row;
            for (int k = 0; k < numbers; k++)
                if (line[k] >= 0.0f && (long long)line[k] == word) *to++ = (unsigned)(row * numbers + k);
        }
    }
}

// The gradient of a table: each row adds up those of its places. x: words·width.
extern "C" __global__ void embed_slopes(
    const float *d, long long d_chain, int chains, int numbers, int words, int width, const unsigned *starts, const unsigned *places,
    float *target, long long t_chain, int add) {
    long long i = THREAD;
    if (i >= (long long)words * width) return;
    long long word = quotient(i, width), column = i - word * width;
    for_each_chain(chain, chains) {
        const unsigned *at = starts + (long long)chain * (words + 1) + word, *place = places + (long long)chain * numbers;
        double sum = 0.0;
        for (unsigned k = at[0]; k < at[1]; k++) sum += (double)d[chain * d_chain + (long long)place[k] * width + column];
        float *out = target + chain * t_chain + i;
        *out = add ? *out + (float)sum : (float)sum;
    }
}

// ---- Convolutions: images [channels, h, w] of each row, windows of kh·kw pixels

// The windows as columns: [rows, channels·kh·kw, oh·ow], or with the rows within, [channels·kh·kw, rows, oh·ow]. x: as many as there are.
extern "C" __global__ void unfold(
    const float *x, long long x_chain, long long x_row, int chains, int rows, int channels, int h, int w, int kh, int kw, int oh, int ow,
    int sy, int sx, int py, int px, int dy, int dx, int within, float *columns) {
    int windows = oh * ow, window = channels * kh * kw;
    long long i = THREAD, n = (long long)rows * window * windows;
    if (i >= n) return;
    long long line = quotient(i, windows);
    int at = (int)(i - line * windows);
    long long row = within ? line % rows : quotient(line, window);
    int k = (int)(within ? quotient(line, rows) : line - row * window);
    int y = at / ow * sy + k / kw % kh * dy - py, z = at % ow * sx + k % kw * dx - px;
    bool inside = y >= 0 && y < h && z >= 0 && z < w;
    long long from = row * x_row + ((long long)(k / (kh * kw)) * h + y) * w + z;
    for_each_chain(chain, chains) columns[chain * n + i] = inside ? x[chain * x_chain + from] : 0.0f;
}

// Each pixel adds up what its places in the windows have, columns as [rows, channels·kh·kw, oh·ow]. x: rows·channels·h·w.
extern "C" __global__ void fold(
    const float *columns, int chains, int rows, int channels, int h, int w, int kh, int kw, int oh, int ow, int sy, int sx, int py, int px,
    int dy, int dx, float *target, long long t_chain, long long t_row, int add) {
    int windows = oh * ow, pixels = channels * h * w;
    long long i = THREAD;
    if (i >= (long long)rows * pixels) return;
    long long row = quotient(i, pixels);
    int e = (int)(i - row * pixels), c = e / (h * w), y = e / w % h + py, z = e % w + px;
    for_each_chain(chain, chains) {
        const float *own = columns + (((long long)chain * rows + row) * channels + c) * kh * kw * windows;
        float sum = 0.0f;
        for (int ky = 0; ky < kh; ky++) {
            int top = y - ky * dy;
            if (top < 0 || top % sy || top / sy >= oh) continue;
            for (int kx = 0; kx < kw; kx++) {
                int left = z - kx * dx;
                if (left < 0 || left % sx || left / sx >= ow) continue;
                sum += own[(long long)(ky * kw + kx) * windows + top / sy * ow + left / sx];
            }
        }
        float *out = target + chain * t_chain + row * t_row + e;
        *out = add ? *out + sum : sum;
    }
}

// [rows, lines, width] to [lines, rows, width]. x: rows·lines·width.
extern "C" __global__ void rows_within(
    const float *x, long long x_chain, int chains, int rows, int lines, int width, float *out) {
    long long i = THREAD, n = (long long)rows * lines * width;
    if (i >= n) return;
    long long q = quotient(i, width), row = quotient(q, lines), line = q - row * lines;
    long long to = (line * rows + row) * width + (i - q * width);
    for_each_chain(chain, chains) out[chain * n + to] = x[chain * x_chain + i];
}

// ---- Attention: heads of a row, whose vectors lie where strides say

// Vectors of heads side by side, [rows, heads, positions, width]: those of head h are where head h/each lies. x: as many as there are.
extern "C" __global__ void take_heads(
    const float *x, long long x_chain, long long x_row, int chains, int rows, int heads, int each, int positions, int width,
    long long start, long long head, long long step, float *out) {
    long long i = THREAD, n = (long long)rows * heads * positions * width;
    if (i >= n) return;
    long long q = quotient(i, width), column = i - q * width, p = quotient(q, positions);
    long long row = quotient(p, heads), own = (p - row * heads) / each;
    long long from = row * x_row + start + own * head + (q - p * positions) * step + column;
    for_each_chain(chain, chains) out[chain * n + i] = x[chain * x_chain + from];
}

// The way back: what `each` heads have is added to where they lie, heads counted there. x: rows·heads·positions·width.
extern "C" __global__ void add_heads(
    const float *x, int chains, int rows, int heads, int each, int positions, int width, long long start, long long head, long long step,
    float *out, long long out_chain, long long out_row, int add) {
    long long i = THREAD, n = (long long)rows * heads * positions * width, page = (long long)positions * width;
    if (i >= n) return;
    long long q = quotient(i, width), column = i - q * width, p = quotient(q, positions), row = quotient(p, heads), own = p - row * heads;
    long long to = row * out_row + start + own * head + (q - p * positions) * step + column;
    for_each_chain(chain, chains) {
        float sum = 0.0f;
        for (int k = 0; k < each; k++) sum += x[chain * n * each + (p * each + k) * page + (i - p * page)];
        float *y = out + chain * out_chain + to;
        *y = add ? *y + sum : sum;
    }
}

// Softmax of scaled scores [pages, queries, keys], in place; query i sees the keys up to `seen` + i, all of them where there are no more.
// x: pages·queries.
extern "C" __global__ void attention_weights(float *scores, int chains, int pages, int queries, int keys, int seen, float scale) {
    long long i = THREAD, n = (long long)pages * queries;
    if (i >= n) return;
    int visible = (int)(i - quotient(i, queries) * queries) + seen;
    visible = visible < keys ? visible : keys;
    for_each_chain(chain, chains) {
        float *p = scores + (chain * n + i) * keys;
        float most = float_of(0xff800000u), sum = 0.0f;
        for (int k = 0; k < visible; k++) most = choose(p[k] > most, p[k], most);
        for (int k = 0; k < visible; k++) {
            p[k] = exp32(scale * (p[k] - most));
            sum += p[k];
        }
        for (int k = 0; k < keys; k++) p[k] = k < visible ? p[k] / sum : 0.0f;
    }
}

// The gradient with respect to the scores, in place of that with respect to the weights p. x: pages·queries.
extern "C" __global__ void attention_slopes(
    const float *p, float *slopes, int chains, int pages, int queries, int keys, float scale) {
    long long i = THREAD, n = (long long)pages * queries;
    if (i >= n) return;
    for_each_chain(chain, chains) {
        const float *w = p + (chain * n + i) * keys;
        float *d = slopes + (chain * n + i) * keys, sum = 0.0f;
        for (int k = 0; k < keys; k++) sum += w[k] * d[k];
        for (int k = 0; k < keys; k++) d[k] = scale * w[k] * (d[k] - sum);
    }
}

// ---- Batches of products

// Where the factors and results of a batch begin, a list of addresses for each: chain, row, and number within a row, whose distances are even or
// listed. x: rows·count; one row.
extern "C" __global__ void addresses(
    const float *a, long long a_chain, long long a_row, long long a_step, const unsigned *a_list,
    const float *b, long long b_chain, long long b_row, long long b_step, const unsigned *b_list,
    const float *out, long long out_chain, long long out_row, long long out_step, const unsigned *out_list,
    int chains, int rows, int count, unsigned long long *to) {
    long long i = THREAD, n = (long long)rows * count;
    if (i >= n) return;
    long long row = quotient(i, count), k = i - row * count;
    for_each_chain(chain, chains) {
        unsigned long long *at = to + chain * n + i;
        at[0] = (unsigned long long)(a + chain * a_chain + row * a_row + (a_list ? (long long)a_list[k] : k * a_step));
        at[chains * n] = (unsigned long long)(b + chain * b_chain + row * b_row + (b_list ? (long long)b_list[k] : k * b_step));
        at[2 * chains * n] = (unsigned long long)(out + chain * out_chain + row * out_row + (out_list ? (long long)out_list[k] : k * out_step));
    }
}
