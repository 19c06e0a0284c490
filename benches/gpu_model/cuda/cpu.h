// What leaf.cu uses of CUDA, for a C++ compiler: lanes run one after another.
#pragma once
#include <cstring>
#define DEVICE inline
#define __global__
#define __launch_bounds__(lanes)
#define __shared__
struct uint2 { unsigned x, y; };
struct Index { unsigned x; };
static Index threadIdx, blockIdx;
// `extern __shared__ u32 memory[]` in leaf.cu names this array.
unsigned memory[256 * 32 * 2];
static int __popc(unsigned x) { return __builtin_popcount(x); }
template <class T> static T atomicAdd(T *at, T more) { T before = *at; *at += more; return before; }
