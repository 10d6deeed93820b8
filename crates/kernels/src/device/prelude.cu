// What every kernel can use: where a thread stands, Philox, the elementary functions and normals, with the bits of the CPU's.
//
// This is plain C++ for nvrtc (with --fmad=false) and for a host's compiler (with -ffp-contract=off): every multiplication and every
// addition is rounded by itself, as in the Rust code. Polynomials are those of kernels/math.rs, streams those of rng.rs.

// The thread's number in x; a kernel returns when it is beyond its work.
#define THREAD ((long long)blockIdx.x * blockDim.x + threadIdx.x)

// Over the chains of the thread's row of blocks: there may be more chains than a grid has rows.
#define for_each_chain(chain, chains) for (int chain = (int)blockIdx.y; chain < (chains); chain += (int)gridDim.y)

// rng::Stream, byte for byte.
typedef struct {
    unsigned key[2];
    unsigned high[3];
} Stream;

__device__ inline unsigned bits_of(float x) {
    union { float f; unsigned u; } v;
    v.f = x;
    return v.u;
}

__device__ inline float float_of(unsigned bits) {
    union { float f; unsigned u; } v;
    v.u = bits;
    return v.f;
}

// i / n for i >= 0. GPUs divide 64-bit numbers by a long routine, 32-bit ones by a short one.
__device__ inline long long quotient(long long i, int n) {
    return i >> 32 ? i / n : (long long)((unsigned)i / (unsigned)n);
}

// The words of kernels/map.rs.
__device__ inline float root(float x) {
    return sqrtf(x);
}

template <typename T>
__device__ inline T choose(bool condition, T a, T b) {
    return condition ? a : b;
}

// The compilers' own max treats NaN otherwise.
__device__ inline float larger(float a, float b) {
    return choose(a > b, a, b);
}
#define max(a, b) larger(a, b)

// Ten rounds of Philox4x32, in place.
__device__ inline void philox4x32_10(unsigned c[4], unsigned k0, unsigned k1) {
    for (int round = 0; round < 10; round++) {
        unsigned long long p0 = 0xD2511F53ull * c[0];
        unsigned long long p1 = 0xCD9E8D57ull * c[2];
        c[0] = (unsigned)(p1 >> 32) ^ c[1] ^ k0;
        c[1] = (unsigned)p1;
        c[2] = (unsigned)(p0 >> 32) ^ c[3] ^ k1;
        c[3] = (unsigned)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

// Natural logarithm of a positive, normal number. (The names of C are taken by the compilers' own functions.)
__device__ inline float ln32(float x) {
    unsigned bits = bits_of(x);
    float e = (float)((int)(bits >> 23) - 126);
    float m = float_of((bits & 0x007fffffu) | 0x3f000000u);  // in [0.5, 1)
    bool small = m < 0.707106781f;
    e = small ? e - 1.0f : e;
    m = small ? m + m - 1.0f : m - 1.0f;
    float z = m * m;
    float y = 7.0376836e-2f * m - 1.15146103e-1f;
    y = y * m + 1.16769987e-1f;
    y = y * m - 1.24201408e-1f;
    y = y * m + 1.42493227e-1f;
    y = y * m - 1.66680577e-1f;
    y = y * m + 2.00007148e-1f;
    y = y * m - 2.4999994e-1f;
    y = y * m + 3.3333331e-1f;
    y = y * m * z;
    y += -2.1219444e-4f * e;
    y += -0.5f * z;
    return m + y + 0.693359375f * e;
}

// The exponential of a number between -87 and 88, or NaN, as (a + b) power.
__device__ inline void exp_in_parts(float x, float *a, float *b, float *power) {
    float n = x * 1.44269504f + 12582912.0f;
    *power = float_of((bits_of(n) << 23) + (127u << 23));
    n = n - 12582912.0f;
    float rest = x - n * 0.693359375f;
    float small = n * -2.1219444e-4f;
    float r = rest - small;
    float lost = (rest - r) - small;
    float y = 1.9875691e-4f * r + 1.3982e-3f;
    y = y * r + 8.333452e-3f;
    y = y * r + 4.1665796e-2f;
    y = y * r + 1.6666665e-1f;
    y = y * r + 5.0000001e-1f;
    float sum = 1.0f + r;
    float more = (r - (sum - 1.0f)) + lost;
    *a = sum;
    *b = y * (r * r) + more;
}

// Exponential of a number between -87 and 88, or NaN.
__device__ inline float exp_within(float x) {
    float a, b, power;
    exp_in_parts(x, &a, &b, &power);
    return (a + b) * power;
}

// Exponential, clamped to the finite range of normal numbers; NaN stays NaN.
__device__ inline float exp32(float x) {
    x = x > 88.0f ? 88.0f : x;
    return exp_within(x < -87.0f ? -87.0f : x);
}

// Hyperbolic tangent.
__device__ inline float tanh32(float x) {
    float z = x * x;
    float p = -5.7049885e-3f * z + 2.0639089e-2f;
    p = p * z - 5.373971e-2f;
    p = p * z + 1.3331442e-1f;
    p = p * z - 3.333328e-1f;
    float near = p * z * x + x;
    float a = fabsf(x);
    float far = 1.0f - 2.0f / (exp_within(a > 10.0f ? 20.0f : a + a) + 1.0f);
    return a < 0.625f ? near : copysignf(far, x);
}

// Logistic function 1 / (1 + exp(-x)).
__device__ inline float logistic32(float x) {
    float a, b, power;
    exp_in_parts(fabsf(x) > 87.0f ? -87.0f : -fabsf(x), &a, &b, &power);
    float sum = a + b;
    float e = sum * power;
    float lost = (b - (sum - a)) * power;
    float below = 1.0f + e;
    float quotient = (x < 0.0f ? e : 1.0f) / below;
    float lost_below = (e - (below - 1.0f)) + lost;
    float inverse = x < 0.0f ? 1.0f - quotient : quotient;
    lost = x < 0.0f ? lost : 0.0f;
    return quotient + (lost - quotient * lost_below) * inverse;
}

// Sine and cosine of 2 pi x for |x| <= 1/8.
__device__ inline void sin_cos_eighth(float x, float *sine, float *cosine) {
    float a = x * 6.28318531f;
    float z = a * a;
    *sine = ((-1.9515296e-4f * z + 8.332161e-3f) * z - 1.6666655e-1f) * z * a + a;
    *cosine = ((2.4433157e-5f * z - 1.3887316e-3f) * z + 4.1666646e-2f) * z * z - 0.5f * z + 1.0f;
}

// Two normals: radius from a, angle from b.
__device__ inline void box_muller(unsigned a, unsigned b, float *first, float *second) {
    const float scale = 1.0f / 4294967296.0f;
    float u = ((float)a + 0.5f) * scale;
    float r = sqrtf(-2.0f * ln32(u));
    // The two top bits choose the quadrant, the rest the angle within pi/4 of its axis.
    float turn = (float)((int)(b & 0x3fffffffu) - 0x20000000) * scale;
    float s, c;
    sin_cos_eighth(turn, &s, &c);
    bool swap = (b & 0x40000000u) != 0;
    float radius = float_of(bits_of(r) | (b & 0x80000000u));
    *first = radius * (swap ? s : c);
    *second = radius * (swap ? -c : s);
}

// The four normals of a Philox block; out[k] is element 64·b + l + 16·k of the stream for counter = 16·b + l.
__device__ inline void normals4(
    unsigned key0, unsigned key1, unsigned high0, unsigned high1, unsigned high2, unsigned counter, float out[4]) {
    unsigned c[4] = {counter, high0, high1, high2};
    philox4x32_10(c, key0, key1);
    box_muller(c[0], c[1], &out[0], &out[1]);
    box_muller(c[2], c[3], &out[2], &out[3]);
}
