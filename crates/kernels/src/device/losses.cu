// What losses are made of, after prelude.cu.

// A label, as the data set has it in memory.
typedef unsigned Label;

// The first index of the largest of `columns` outputs.
__device__ inline int argmax(const float *z, int columns) {
    int best = 0;
    for (int k = 1; k < columns; k++)
        if (z[k] > z[best]) best = k;
    return best;
}
