// The AVX-512 kernels, unchanged, over emulated instructions, so that they are tested on any CPU
// with AVX2. The library may hold the native table, hence another name for this one.
#define avx512_table emulated_avx512_table

#include "kernels/avx512/avx512.cpp"
