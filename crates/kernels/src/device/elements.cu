// The elementary functions of generated kernels in both precisions, after prelude.cu: those of tensor/real.rs, in single precision with its
// polynomials, in double precision with the compiler's own.

// e^x over the whole range: infinite above, 0 below.
__device__ inline float real_exp(float x) {
    bool large = x > 88.0f;
    float y = exp32(large ? x - 1.0f : x);
    y = large ? y * 2.71828183f : y;
    return x < -87.0f ? 0.0f : y;
}
__device__ inline double real_exp(double x) { return exp(x); }

// ln x of any number: -infinity at 0, NaN below.
__device__ inline float real_ln(float x) {
    bool small = x < 1.17549435e-38f;
    float y = ln32(small ? x * 16777216.0f : x);
    y = small ? y - 16.635532f : y;
    y = x == float_of(0x7f800000u) ? x : y;
    y = x == 0.0f ? float_of(0xff800000u) : y;
    return x >= 0.0f ? y : float_of(0x7fc00000u);
}
__device__ inline double real_ln(double x) { return log(x); }

__device__ inline float real_tanh(float x) { return tanh32(x); }
__device__ inline double real_tanh(double x) { return tanh(x); }
__device__ inline float real_sigmoid(float x) { return logistic32(x); }
__device__ inline double real_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

// ln(1 + e^x), without overflow and for x far below 0 too.
__device__ inline float real_softplus(float x) {
    float u = real_exp(-fabsf(x));
    float w = 1.0f + u;
    float d = w - 1.0f;
    float l = d == 0.0f ? u : ln32(w) * u / d;
    return x > 0.0f ? x + l : l;
}
__device__ inline double real_softplus(double x) {
    double l = log1p(exp(-fabs(x)));
    return x > 0.0 ? x + l : l;
}

__device__ inline float real_sqrt(float x) { return sqrtf(x); }
__device__ inline double real_sqrt(double x) { return sqrt(x); }
__device__ inline float real_abs(float x) { return fabsf(x); }
__device__ inline double real_abs(double x) { return fabs(x); }
__device__ inline float real_sin(float x) { return sinf(x); }
__device__ inline double real_sin(double x) { return sin(x); }
__device__ inline float real_cos(float x) { return cosf(x); }
__device__ inline double real_cos(double x) { return cos(x); }
__device__ inline float real_tan(float x) { return tanf(x); }
__device__ inline double real_tan(double x) { return tan(x); }
__device__ inline float real_sinh(float x) { return sinhf(x); }
__device__ inline double real_sinh(double x) { return sinh(x); }
__device__ inline float real_cosh(float x) { return coshf(x); }
__device__ inline double real_cosh(double x) { return cosh(x); }
__device__ inline float real_atan(float x) { return atanf(x); }
__device__ inline double real_atan(double x) { return atan(x); }
__device__ inline float real_erf(float x) { return erff(x); }
__device__ inline double real_erf(double x) { return erf(x); }
__device__ inline float real_erf_slope(float x) { return 1.12837917f * exp32(-x * x); }
__device__ inline double real_erf_slope(double x) { return 1.1283791670955126 * exp(-x * x); }
__device__ inline float real_normal_cdf(float x) { return 0.5f * erfcf(-x * 0.707106781f); }
__device__ inline double real_normal_cdf(double x) { return 0.5 * erfc(-x * 0.7071067811865476); }
__device__ inline float real_normal_density(float x) { return 0.3989423f * expf(-0.5f * x * x); }
__device__ inline double real_normal_density(double x) { return 0.3989422804014327 * exp(-0.5 * x * x); }
__device__ inline float real_powf(float x, float y) { return powf(x, y); }
__device__ inline double real_powf(double x, double y) { return pow(x, y); }

// x to a whole power.
__device__ inline float real_powi(float x, int n) {
    float power = 1.0f;
    for (int k = n < 0 ? -n : n; k > 0; k--) power *= x;
    return n < 0 ? 1.0f / power : power;
}
__device__ inline double real_powi(double x, int n) {
    double power = 1.0, square = x;
    for (unsigned left = n < 0 ? -(unsigned)n : (unsigned)n; left; left >>= 1) {
        if (left & 1u) power *= square;
        square *= square;
    }
    return n < 0 ? 1.0 / power : power;
}
