// Reads stored lists, makes the programs of leaf.cu, runs every shape and compares all counts.
#pragma once

// A call as `steps dump=FILE` writes it, and its expected count.
struct Stored {
    u32 head[7], columns[ROWS];
    std::vector<uint2> states;
    std::vector<u32> completions;
    u64 expected() const { return head[2] | (u64)head[3] << 32; }
};

struct Batch {
    std::vector<Call> calls;
    std::vector<uint2> states, records;
    std::vector<u32> pairs;
    std::vector<u64> expected;
    u64 counted_states = 0;
};

static std::vector<Stored> read(const char *path, u32 &n) {
    std::vector<Stored> all;
    FILE *file = fopen(path, "rb");
    if (!file || fread(&n, 4, 1, file) != 1) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    Stored call;
    while (fread(call.head, 4, 7, file) == 7) {
        call.states.resize(call.head[0]);
        call.completions.resize(call.head[1]);
        if (fread(call.columns, 4, ROWS, file) != ROWS ||
            fread(call.states.data(), 8, call.head[0], file) != call.head[0] ||
            fread(call.completions.data(), 4, call.head[1], file) != call.head[1])
            exit(2);
        all.push_back(call);
    }
    fclose(file);
    return all;
}

// Adds a call's list and program. Returns false if its pairs need more planes than there are.
static bool add(Batch &batch, const Stored &stored, u32 n, int planes, bool filters) {
    Call call = {};
    call.n = n;
    call.left = stored.head[4];
    call.right = stored.head[5];
    call.first_row = stored.head[6];
    for (int i = 0; i < ROWS; i++) call.columns[i] = stored.columns[i];
    std::map<u32, u32> plane_of;
    std::map<u32, std::vector<u32>> outer_of;
    std::vector<u32> pairs;
    for (u32 completion : stored.completions) {
        u32 of_row[4];
        for (int i = 0; i < 4; i++) {
            u32 a = completion >> 8 * i & 15, b = completion >> (8 * i + 4) & 15;
            u32 first = planes - SQUARES + 16 * i, pair = (first + a) | (first + 8 + b) << 8;
            if (!plane_of.count(pair)) {
                plane_of[pair] = FIRST_PAIR + pairs.size();
                pairs.push_back(pair);
            }
            of_row[i] = plane_of[pair];
        }
        outer_of[of_row[0] | of_row[1] << 8].push_back(of_row[2] | of_row[3] << 8);
    }
    if (FIRST_PAIR + pairs.size() > (u32)planes - SQUARES) return false;
    std::vector<u32> singles;
    std::vector<uint2> triples;
    for (auto &[inner, outer] : outer_of)
        for (size_t i = 0; i < outer.size(); i += 3) {
            if (outer.size() - i == 1) {
                singles.push_back(inner | outer[i] << 16);
                continue;
            }
            u32 third = i + 2 < outer.size() ? outer[i + 2] : 0;
            triples.push_back({inner | outer[i] << 16, outer[i + 1] | third << 16});
        }
    if (singles.size() % 2) singles.push_back(0);
    call.list = batch.states.size();
    for (uint2 state : stored.states) {
        bool kept = !((state.x & call.left) | (state.y & call.right));
        batch.counted_states += kept;
        if (filters || kept) batch.states.push_back(state);
    }
    call.states = batch.states.size() - call.list;
    call.pairs = batch.pairs.size();
    call.pair_count = pairs.size();
    batch.pairs.insert(batch.pairs.end(), pairs.begin(), pairs.end());
    call.singles = batch.records.size();
    call.single_count = singles.size() / 2;
    for (size_t i = 0; i < singles.size(); i += 2) batch.records.push_back({singles[i], singles[i + 1]});
    batch.records.push_back({0, 0});
    call.triples = batch.records.size();
    call.triple_count = triples.size();
    batch.records.insert(batch.records.end(), triples.begin(), triples.end());
    batch.records.push_back({0, 0});
    batch.calls.push_back(call);
    batch.expected.push_back(stored.expected());
    return true;
}

#ifdef __CUDACC__
static void must(cudaError_t error) {
    if (error != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
        exit(2);
    }
}

template <class T> static T *on_device(const std::vector<T> &data) {
    T *at;
    must(cudaMalloc(&at, data.size() * sizeof(T)));
    must(cudaMemcpy(at, data.data(), data.size() * sizeof(T), cudaMemcpyHostToDevice));
    return at;
}

// The least number of warps of a run: lists are counted several times to fill a device. The lists then
// stay in its caches more than those of a whole count.
constexpr size_t WARPS = 4096;

// Runs the kernel. Returns the counts, and the seconds of the fastest of several runs.
template <int WORDS, int PLANES, bool FILTERS>
static std::vector<u64> launch(Batch &batch, double &seconds, int &warps) {
    const size_t once = batch.calls.size(), states_once = batch.counted_states;
    while (once && batch.calls.size() < WARPS) {
        for (size_t i = 0; i < once; i++) {
            batch.calls.push_back(batch.calls[i]);
            batch.expected.push_back(batch.expected[i]);
        }
        batch.counted_states += states_once;
    }
    auto kernel = leaf<WORDS, PLANES, FILTERS>;
    int bytes = PLANES * LANES * WORDS * 4;
    must(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&warps, kernel, LANES, bytes));
    Call *calls = on_device(batch.calls);
    uint2 *states = on_device(batch.states), *records = on_device(batch.records);
    u32 *pairs = on_device(batch.pairs);
    std::vector<u64> counts(batch.calls.size());
    unsigned long long *on_gpu;
    must(cudaMalloc(&on_gpu, counts.size() * 8));
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin));
    must(cudaEventCreate(&end));
    seconds = 1e9;
    for (int run = 0; run < 4; run++) {
        must(cudaMemset(on_gpu, 0, counts.size() * 8));
        must(cudaEventRecord(begin));
        kernel<<<counts.size(), LANES, bytes>>>(calls, states, pairs, records, on_gpu);
        must(cudaGetLastError());
        must(cudaEventRecord(end));
        must(cudaEventSynchronize(end));
        float milliseconds;
        must(cudaEventElapsedTime(&milliseconds, begin, end));
        if (milliseconds / 1000 < seconds) seconds = milliseconds / 1000;
    }
    must(cudaMemcpy(counts.data(), on_gpu, counts.size() * 8, cudaMemcpyDeviceToHost));
    for (void *at : {(void *)calls, (void *)states, (void *)records, (void *)pairs, (void *)on_gpu})
        must(cudaFree(at));
    return counts;
}
#else
template <int WORDS, int PLANES, bool FILTERS>
static std::vector<u64> launch(Batch &batch, double &seconds, int &warps) {
    std::vector<unsigned long long> counts(batch.calls.size());
    for (blockIdx.x = 0; blockIdx.x < counts.size(); blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < LANES; threadIdx.x++)
            leaf<WORDS, PLANES, FILTERS>(batch.calls.data(), batch.states.data(), batch.pairs.data(),
                                         batch.records.data(), counts.data());
    seconds = warps = 0;
    return {counts.begin(), counts.end()};
}
#endif

// Runs a shape over all calls that it suits, and checks each count. Returns whether all are right.
template <int WORDS, int PLANES, bool FILTERS>
static bool run(const std::vector<Stored> &stored, u32 n) {
    Batch batch;
    size_t left_out = 0, wrong = 0;
    for (const Stored &call : stored) left_out += !add(batch, call, n, PLANES, FILTERS);
    double seconds;
    int warps;
    std::vector<u64> counts = launch<WORDS, PLANES, FILTERS>(batch, seconds, warps);
    for (size_t i = 0; i < counts.size(); i++) wrong += counts[i] != batch.expected[i];
    printf("%u,%d,%d,%s,%d,%zu,%zu,%llu,%.6f,%.4e,%s\n", n, WORDS, PLANES,
           FILTERS ? "in the kernel" : "before", warps, counts.size(), left_out,
           (unsigned long long)batch.counted_states, seconds,
           seconds > 0 ? batch.counted_states / seconds : 0.0, wrong ? "WRONG" : "right");
    return wrong == 0;
}

int main(int count, char **arguments) {
    std::string beside = arguments[0];
    beside = beside.substr(0, beside.rfind('/') + 1) + "calls.bin";
    u32 n;
    std::vector<Stored> stored = read(count > 1 ? arguments[1] : beside.c_str(), n);
    printf("n,words,planes,filter,warps_of_a_multiprocessor,calls,left_out,states,seconds,states_per_s,counts\n");
    bool right = run<1, 256, true>(stored, n);
    right &= run<1, 224, true>(stored, n);
    right &= run<2, 256, true>(stored, n);
    right &= run<2, 224, true>(stored, n);
    right &= run<1, 256, false>(stored, n);
    right &= run<1, 224, false>(stored, n);
    right &= run<2, 256, false>(stored, n);
    right &= run<2, 224, false>(stored, n);
    return right ? 0 : 1;
}
