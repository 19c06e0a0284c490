// The leaf kernel of column sets in CUDA: counts the pairs of states and completions of the outer
// eight rows that do not meet, by bit planes. It is the part of shaders/column_sets/planes.wgsl and
// counts.wgsl that takes most of the time in a good implementation, in several shapes, over stored
// lists.
//
//   leaf FILE    (written by `steps dump=FILE`; without FILE, `calls.bin` beside the program)
//
// A plane has one bit for each state of a warp: WORDS words of 32 states in each lane. Lanes share
// nothing, so that there is no barrier, and a C++ compiler can build this file to check it:
//   g++ -x c++ -O2 -o leaf_cpu leaf.cu
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

typedef uint32_t u32;
typedef uint64_t u64;

#ifdef __CUDACC__
#define DEVICE __device__ __forceinline__
#else
#include "cpu.h"
#endif

constexpr int LANES = 32, ROWS = 8, SQUARES = 8 * ROWS;
constexpr int ZERO = 0, FIRST_PAIR = 1;

// The work of a warp. `Call`s are read by all lanes.
struct Call {
    u32 list, states;
    // The test of the last row that filters.
    u32 left, right;
    u32 n, first_row;
    u32 columns[ROWS];
    // The used pairs of squares of rows 0 and 1, 2 and 3, 4 and 5, 6 and 7: two squares in a word.
    u32 pairs, pair_count;
    // Records: the planes of the inner pairs in the low bytes of `x`, then those of completions: one
    // (`singles`, two records in a uint2), or up to three.
    u32 singles, single_count, triples, triple_count;
};

template <int WORDS> struct Plane { u32 word[WORDS]; };

template <int WORDS, int PLANES> struct Warp {
    typedef Plane<WORDS> P;
    // The squares are behind the pairs; the planes of the masks are where the pairs will be.
    static constexpr int FIRST_SQUARE = PLANES - SQUARES, LEFT = FIRST_PAIR, RIGHT = FIRST_PAIR + 32;
    P (*planes)[LANES];
    u32 lane;

    DEVICE P get(u32 index) const { return planes[index][lane]; }
    DEVICE void put(u32 index, P plane) { planes[index][lane] = plane; }
    DEVICE P both(P a, P b) const {
        for (int i = 0; i < WORDS; i++) a.word[i] &= b.word[i];
        return a;
    }
    DEVICE P pair(u32 low, u32 high) const { return both(get(low), get(high)); }
};

// Transposes 32 words: bit i of word j becomes bit j of word i.
template <int DISTANCE> DEVICE void exchange(u32 *v, u32 mask) {
#pragma unroll
    for (int i = 0; i < 32; i++)
        if (!(i & DISTANCE)) {
            u32 low = v[i], high = v[i + DISTANCE];
            v[i] = (low & mask) | ((high << DISTANCE) & ~mask);
            v[i + DISTANCE] = ((low >> DISTANCE) & mask) | (high & ~mask);
        }
}

DEVICE void transpose(u32 *v) {
    exchange<16>(v, 0x0000ffff);
    exchange<8>(v, 0x00ff00ff);
    exchange<4>(v, 0x0f0f0f0f);
    exchange<2>(v, 0x33333333);
    exchange<1>(v, 0x55555555);
}

// Adds two planes to `ones` and counts the carries.
template <int WORDS> DEVICE u32 carries(Plane<WORDS> &ones, Plane<WORDS> a, Plane<WORDS> b) {
    u32 count = 0;
    for (int i = 0; i < WORDS; i++) {
        u32 x = a.word[i], y = b.word[i], s = ones.word[i];
        count += __popc((s & (x | y)) | (x & y));
        ones.word[i] = s ^ x ^ y;
    }
    return count;
}

// Counts a call. If FILTERS, states that meet the test are left out; else there are none.
template <int WORDS, int PLANES, bool FILTERS>
DEVICE u32 count(Warp<WORDS, PLANES> warp, const Call &call, const uint2 *states, const u32 *pairs,
                 const uint2 *records) {
    typedef Plane<WORDS> P;
    typedef Warp<WORDS, PLANES> W;
    const uint2 *list = states + call.list;
    u32 next = warp.lane, total = 0;
    while (next < call.states) {
        P valid;
#pragma unroll 1
        for (int word = 0; word < WORDS; word++) {
            u32 found = 0, left[32], right[32];
            if (FILTERS) {
                // States are put into the lane's column of memory, because registers have no index.
                while (found < 32 && next < call.states) {
                    uint2 some[8];
#pragma unroll
                    for (int i = 0; i < 8; i++)
                        if (next + i * LANES < call.states) some[i] = list[next + i * LANES];
                    u32 read = 0;
#pragma unroll
                    for (int i = 0; i < 8; i++)
                        if (found < 32 && next + i * LANES < call.states) {
                            read += LANES;
                            if (!((some[i].x & call.left) | (some[i].y & call.right))) {
                                warp.planes[W::LEFT + found][warp.lane].word[word] = some[i].x;
                                warp.planes[W::RIGHT + found][warp.lane].word[word] = some[i].y;
                                found++;
                            }
                        }
                    next += read;
                }
#pragma unroll
                for (int i = 0; i < 32; i++) {
                    left[i] = warp.planes[W::LEFT + i][warp.lane].word[word];
                    right[i] = warp.planes[W::RIGHT + i][warp.lane].word[word];
                }
            } else {
#pragma unroll
                for (int i = 0; i < 32; i++) {
                    uint2 state = {};
                    if (next + i * LANES < call.states) {
                        state = list[next + i * LANES];
                        found++;
                    }
                    left[i] = state.x;
                    right[i] = state.y;
                }
                next += 32 * LANES;
            }
            u32 mask = found == 32 ? ~0u : (1u << found) - 1;
            for (int i = 0; i < WORDS; i++)
                if (i == word) valid.word[i] = mask;
            transpose(left);
            transpose(right);
#pragma unroll
            for (int i = 0; i < 28; i++) {
                warp.planes[W::LEFT + i][warp.lane].word[word] = left[i];
                warp.planes[W::RIGHT + i][warp.lane].word[word] = right[i];
            }
        }
#pragma unroll 1
        for (int row = 0; row < ROWS; row++) {
#pragma unroll
            for (int rank = 0; rank < 8; rank++) {
                u32 column = call.columns[rank], distance = call.first_row + row;
                P square = valid;
                for (int i = 0; i < WORDS; i++) {
                    if (column + distance < call.n)
                        square.word[i] &= ~warp.get(W::LEFT + column + distance).word[i];
                    if (column >= distance)
                        square.word[i] &= ~warp.get(W::RIGHT + column - distance).word[i];
                }
                warp.put(W::FIRST_SQUARE + 8 * row + rank, square);
            }
        }
        P zero = {};
        warp.put(ZERO, zero);
#pragma unroll 4
        for (u32 i = 0; i < call.pair_count; i++) {
            u32 which = pairs[call.pairs + i];
            warp.put(FIRST_PAIR + i, warp.pair(which & 0xff, which >> 8 & 0xff));
        }
        P ones = {};
        u32 twice = 0;
        // The next record is read before it is needed.
        uint2 ahead = records[call.singles];
#pragma unroll 1
        for (u32 i = 1; i <= call.single_count; i++) {
            uint2 record = ahead;
            ahead = records[call.singles + i];
            P a = warp.both(warp.pair(record.x & 0xff, record.x >> 8 & 0xff),
                            warp.pair(record.x >> 16 & 0xff, record.x >> 24));
            P b = warp.both(warp.pair(record.y & 0xff, record.y >> 8 & 0xff),
                            warp.pair(record.y >> 16 & 0xff, record.y >> 24));
            twice += carries(ones, a, b);
        }
        ahead = records[call.triples];
        u32 once = 0;
#pragma unroll 1
        for (u32 i = 1; i <= call.triple_count; i++) {
            uint2 record = ahead;
            ahead = records[call.triples + i];
            P inner = warp.pair(record.x & 0xff, record.x >> 8 & 0xff);
            P a = warp.both(inner, warp.pair(record.x >> 16 & 0xff, record.x >> 24));
            P b = warp.both(inner, warp.pair(record.y & 0xff, record.y >> 8 & 0xff));
            P c = warp.both(inner, warp.pair(record.y >> 16 & 0xff, record.y >> 24));
            twice += carries(ones, a, b);
            for (int i = 0; i < WORDS; i++) once += __popc(c.word[i]);
        }
        for (int i = 0; i < WORDS; i++) once += __popc(ones.word[i]);
        total += 2 * twice + once;
    }
    return total;
}

template <int WORDS, int PLANES, bool FILTERS>
__global__ void __launch_bounds__(LANES)
leaf(const Call *calls, const uint2 *states, const u32 *pairs, const uint2 *records,
     unsigned long long *counts) {
    extern __shared__ u32 memory[];
    Warp<WORDS, PLANES> warp = {(Plane<WORDS>(*)[LANES])memory, threadIdx.x};
    u32 found = count<WORDS, PLANES, FILTERS>(warp, calls[blockIdx.x], states, pairs, records);
    if (found) atomicAdd(&counts[blockIdx.x], (unsigned long long)found);
}

#include "leaf_host.h"
