// Drives the three shaders on a GPU: src/kernel/gpu/{device,device_kernel,tuning}.rs for browsers.

const WORKGROUP = 64, TAKE = 8, GROUP = 4, LEVELS = 17, LAST_LEVEL = 2;
const COUNTERS = { stamp: 0, ringWrite: 1, ringRead: 2, ringReturned: 3, returnedTotal: 4, busy: 7, expansions: 8, expanded: 9,
  appended: 10, searches: 11, lowerPut: 12, lowerTaken: 13, ringPut: 14, ringTaken: 15, faults: 16, levelFirst: 17,
  levelCount: 34 };
const COUNTER_WORDS = 51, SLOT_WORDS = 12, LANE_WORDS = 13, LOWER_WORDS = 6, UPPER_WORDS = 4;
const FEWEST_TURNS = 256, MOST_ROUNDS = 256, MOST_EXPANSIONS = 32;
// Software drivers silently leave a shader's loop after 65,535 iterations.
const MOST_TURNS = 65_532, MOST_SOFTWARE_TURNS = 48_000;
// No submission of a healthy device takes longer, in ms.
const HUNG_MS = 60_000;

/** What went wrong with a GPU, in one line for the visitor. */
export class GpuError extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

/** Thrown when the count is no longer wanted. */
export class Stopped extends Error {}

/** Returns how a GPU is called: never empty. */
export function nameOf(adapter) {
  const { description, vendor, architecture, device } = adapter.info ?? {};
  const parts = [vendor, architecture, device].filter(Boolean).join(" ");
  return (description || parts || "unknown GPU").slice(0, 100);
}

const isSoftware = (adapter) =>
  Boolean(adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter) ||
  /swiftshader|llvmpipe|basic render/i.test(nameOf(adapter));

/** The amounts of work in a submission: about `target` ms, and little at first. */
class Tuning {
  constructor(software, target) {
    const mostTurns = software ? MOST_SOFTWARE_TURNS : MOST_TURNS;
    Object.assign(this, { turns: FEWEST_TURNS, rounds: 1, expansions: 4, target, mostTurns });
  }

  observe(elapsed, used, lanes, counters) {
    const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
    const plenty = counters.subarray(COUNTERS.levelCount, COUNTERS.levelCount + LEVELS).some((count) => count > 0);
    const full = counters[COUNTERS.busy] >= (lanes / 8) * 7;
    const share = used / (this.rounds * this.expansions);
    const factor = clamp(this.target / Math.max(elapsed, 0.001), 0.125, full ? 2 : 1);
    const before = this.rounds;
    let rounds = before * factor;
    if (!full && plenty && share > 0.9) {
      this.expansions = Math.min(2 * this.expansions, MOST_EXPANSIONS);
    } else if (!full && plenty && this.turns > FEWEST_TURNS) {
      this.turns = Math.max(this.turns >> 1, FEWEST_TURNS);
      rounds = before * Math.min(2 * factor, 2);
    } else if (full && share < 0.5 && this.expansions > 1) {
      this.expansions -= 1;
    } else if (full && factor > 1 && this.turns < Math.min(4096, this.mostTurns)) {
      this.turns = Math.min(2 * this.turns, this.mostTurns);
      rounds = before;
    }
    if (factor < 1 && before === 1) this.turns = clamp(Math.floor(this.turns * factor), FEWEST_TURNS, this.mostTurns);
    this.rounds = clamp(Math.round(rounds), 1, MOST_ROUNDS);
    this.turns -= this.turns % GROUP;
  }
}

/** Returns a shape whose buffers each have at most `mostBytes`. */
function fit(shape, tables, mostBytes) {
  for (;;) {
    const { lanes, chunk, ring } = shape;
    const words = [levelsOf(tables, shape).states * LOWER_WORDS, ring * UPPER_WORDS, lanes * tables.depth * UPPER_WORDS,
      lanes * LANE_WORDS];
    const isLarge = (ring) => ring >= 2 * lanes * TAKE + 64 * tables.most_emitted;
    if (4 * Math.max(...words) <= mostBytes && isLarge(ring)) return shape;
    if (lanes <= WORKGROUP || chunk <= WORKGROUP) throw new GpuError("memory", "The memory of this GPU is too small.");
    const halfOfLanes = Math.ceil(lanes / 2 / WORKGROUP) * WORKGROUP;
    shape = { ...shape, lanes: halfOfLanes, chunk: chunk >> 1, ring: isLarge(ring / 2) ? ring / 2 : ring };
  }
}

/** Returns where each level begins, and the number of states of all levels. */
function levelsOf(tables, { prefixes, chunk }) {
  const first = new Array(LEVELS).fill(0);
  let states = prefixes;
  for (let level = LAST_LEVEL; level < Math.min(LAST_LEVEL + tables.most_lower, LEVELS); level++) {
    first[level] = states;
    states += chunk * (2 + level + tables.most_upper);
  }
  return { first, states };
}

/** A GPU that counts batches. */
export class Gpu {
  /** Opens the GPU of this browser. `lost` is called with a line for the visitor once it is lost. */
  static async open({ allowSoftware, target = 50, lost }) {
    const none = "This browser has no WebGPU, so it cannot count. Try a current Chrome, Edge, Firefox or Safari.";
    if (!navigator.gpu) throw new GpuError("none", none);
    const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) throw new GpuError("none", "This browser offers no GPU to pages. A driver may be missing or blocked.");
    const software = isSoftware(adapter);
    if (software && !allowSoftware)
      throw new GpuError("software", "This browser only emulates a GPU in software, which is too slow to count.");
    const { maxStorageBufferBindingSize, maxBufferSize } = adapter.limits;
    const device = await adapter.requestDevice({ requiredLimits: { maxStorageBufferBindingSize, maxBufferSize } })
      .catch((error) => { throw new GpuError("refused", `The GPU cannot be used: ${error.message}`); });
    const gpu = new Gpu(adapter, device, software, target);
    device.lost.then(({ reason, message }) => {
      gpu.isLost = true;
      if (gpu.closed) return;
      const why = `The GPU was lost: ${message || "its driver stopped"}`;
      lost?.(reason === "destroyed" ? "The GPU was taken away from this page." : why);
    });
    device.addEventListener("uncapturederror", ({ error }) => (gpu.error ??= error));
    await gpu.#compile();
    return gpu;
  }

  #modules = {};
  #search = new Map();
  #job;

  constructor(adapter, device, software, target) {
    const tuning = new Tuning(software, target);
    Object.assign(this, { device, software, target, tuning, name: nameOf(adapter), isLost: false, closed: false });
    const [lanes, chunk, ring] = software ? [512, 512, 1 << 15] : [1 << 15, 1 << 13, 1 << 20];
    this.shape = { lanes, chunk, ring, prefixes: 1 << 14 };
  }

  async #compile() {
    const source = (name) => fetch(`shaders/${name}.wgsl`).then((response) => response.text());
    const names = ["schedule", "expand", "search"];
    const sources = await Promise.all(names.map(source));
    names.forEach((name, i) => (this.#modules[name] = this.device.createShaderModule({ label: name, code: sources[i] })));
    [this.schedule, this.expand] = await Promise.all([this.#pipeline("schedule", {}), this.#pipeline("expand", {})]);
  }

  #pipeline(entryPoint, constants) {
    const compute = { module: this.#modules[entryPoint], entryPoint, constants };
    return this.device.createComputePipelineAsync({ label: entryPoint, layout: "auto", compute })
      .catch((error) => { throw new GpuError("refused", `The GPU rejects a shader: ${error.message}`); });
  }

  #searchOf(depth, variant) {
    const key = `${depth} ${variant}`;
    if (!this.#search.has(key)) {
      const is = (name) => Number(variant === name);
      const constants = { DEPTH: depth, GATED: is("gated"), GENERAL: is("general"), LOOK_AHEAD: 1 };
      this.#search.set(key, this.#pipeline("search", constants));
    }
    return this.#search.get(key);
  }

  #check() {
    if (this.isLost) throw new GpuError("lost", "The GPU was lost.");
    if (this.error) throw new GpuError("refused", `The GPU reports an error: ${this.error.message}`);
  }

  #buffer(words, usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC) {
    return this.device.createBuffer({ size: Math.max(16, words * 4), usage });
  }

  #filled(words) {
    const buffer = this.#buffer(words.length);
    this.device.queue.writeBuffer(buffer, 0, words);
    return buffer;
  }

  /** Allocates the memory of a job. */
  async setTables(tables) {
    this.#check();
    this.#job?.buffers.forEach((buffer) => buffer.destroy());
    const { limits } = this.device;
    const shape = fit(this.shape, tables, Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize));
    const levels = levelsOf(tables, shape);
    this.device.pushErrorScope("out-of-memory");
    const job = { tables, shape, levels,
      params: this.#buffer(8, GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST),
      counters: this.#buffer(COUNTER_WORDS), states: this.#buffer(levels.states * LOWER_WORDS),
      ring: this.#buffer(shape.ring * UPPER_WORDS),
      lanes: this.#buffer(shape.lanes * LANE_WORDS), stacks: this.#buffer(shape.lanes * tables.depth * UPPER_WORDS),
      lower: this.#filled(tables.lowerRows), upper: this.#filled(tables.upperRows),
      reading: this.#buffer(COUNTER_WORDS, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST) };
    const { params, counters, states, ring, lanes, stacks, lower, upper, reading } = job;
    job.buffers = [params, counters, states, ring, lanes, stacks, lower, upper, reading];
    if (await this.device.popErrorScope())
      throw new GpuError("memory", "The GPU is out of memory. Close other tabs or programs that use it.");
    this.#job = job;
  }

  async #read(buffer, words, reading) {
    const own = reading ?? this.#buffer(words, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
    const encoder = this.device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, own, 0, words * 4);
    this.device.queue.submit([encoder.finish()]);
    let timer;
    const hung = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new GpuError("hung", "The GPU does not answer.")), HUNG_MS);
    });
    try {
      await Promise.race([own.mapAsync(GPUMapMode.READ), hung, this.device.lost]);
      this.#check();
      const content = new Uint32Array(own.getMappedRange().slice(0));
      own.unmap();
      return content;
    } finally {
      clearTimeout(timer);
      if (!reading) own.destroy();
    }
  }

  /**
   * Counts a batch. `pace(elapsed)` is awaited after each submission with its time in ms: it may rest, and throws to stop.
   * Returns the counters at the end and the slots.
   */
  async count(batch, pace) {
    this.#check();
    const { device } = this;
    const job = this.#job;
    const { tables, shape } = job;
    const segments = this.#filled(batch.segmentWords);
    const slots = this.#buffer(batch.slots * SLOT_WORDS);
    try {
      const search = await this.#searchOf(tables.depth, batch.variant);
      const counters = new Uint32Array(COUNTER_WORDS);
      counters.set(job.levels.first, COUNTERS.levelFirst);
      counters[COUNTERS.levelCount] = batch.prefixes;
      counters[COUNTERS.lowerPut] = batch.checksum;
      device.queue.writeBuffer(job.counters, 0, counters);
      device.queue.writeBuffer(job.states, 0, batch.prefixWords);
      const encoder = device.createCommandEncoder();
      encoder.clearBuffer(job.lanes);
      device.queue.submit([encoder.finish()]);
      const bind = (pipeline, buffers) => device.createBindGroup({ layout: pipeline.getBindGroupLayout(0),
        entries: buffers.map((buffer, binding) => ({ binding, resource: { buffer } })) });
      const groups = { schedule: bind(this.schedule, [job.counters, job.params]),
        expand: bind(this.expand, [job.counters, job.params, job.states, job.ring, segments, job.lower]),
        search: bind(search, [job.counters, job.params, job.ring, job.lanes, job.stacks, slots, job.upper]) };
      return await this.#run(job, { search, groups, slots, batch }, pace, { tables, shape });
    } finally {
      segments.destroy();
      slots.destroy();
    }
  }

  async #run(job, { search, groups, slots, batch }, pace, { tables, shape }) {
    let stamp = 0, searches = 0, used = 0;
    const submit = async (flush) => {
      const { turns } = this.tuning;
      const [rounds, expansions] = flush ? [1, 1] : [this.tuning.rounds, this.tuning.expansions];
      stamp += 1;
      searches += rounds;
      const { lanes, chunk, ring } = shape;
      const params = [stamp, turns, chunk, ring - 1, lanes * TAKE, tables.most_emitted, Number(flush), lanes];
      this.device.queue.writeBuffer(job.params, 0, new Uint32Array(params));
      const encoder = this.device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      const dispatch = (pipeline, group, workgroups) => {
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(workgroups);
      };
      for (let round = 0; round < rounds; round++) {
        for (let expansion = 0; expansion < expansions; expansion++) {
          dispatch(this.schedule, groups.schedule, 1);
          dispatch(this.expand, groups.expand, Math.ceil(shape.chunk / WORKGROUP));
        }
        dispatch(search, groups.search, shape.lanes / WORKGROUP);
      }
      pass.end();
      this.device.queue.submit([encoder.finish()]);
      const counters = await this.#read(job.counters, COUNTER_WORDS, job.reading);
      if (counters[COUNTERS.stamp] !== stamp || counters[COUNTERS.searches] !== searches) throw miscounts("work was dropped");
      return counters;
    };
    for (;;) {
      const began = performance.now();
      const counters = await submit(false);
      const elapsed = performance.now() - began;
      if (isDrained(counters)) break;
      this.tuning.observe(elapsed, counters[COUNTERS.expansions] - used, shape.lanes, counters);
      used = counters[COUNTERS.expansions];
      await pace(elapsed);
    }
    const counters = await submit(true);
    const words = await this.#read(slots, batch.slots * SLOT_WORDS);
    audit(batch, counters, words);
    return { counters, slots: words };
  }

  /** Gives the GPU back. */
  close() {
    this.closed = true;
    this.device.destroy();
  }
}

const miscounts = (what) => new GpuError("miscounts", `This GPU or its driver miscounts (${what}), so nothing of it is used.`);

/** Returns whether no work is left. */
function isDrained(counters) {
  const waiting = (counters[COUNTERS.ringWrite] - counters[COUNTERS.ringRead]) | 0;
  const levels = counters.subarray(COUNTERS.levelCount, COUNTERS.levelCount + LEVELS);
  const isIdle = counters[COUNTERS.ringReturned] === 0 && counters[COUNTERS.busy] === 0;
  return waiting <= 0 && isIdle && levels.every((count) => count === 0);
}

/** Checks that all work was done exactly once: src/kernel/gpu/accounting.rs, which the coordinator repeats. */
function audit(batch, counters, slots) {
  const same = (a, b) => counters[a] === counters[b];
  if (!isDrained(counters)) throw miscounts("work came back");
  const toExpand = (batch.prefixes + counters[COUNTERS.appended]) >>> 0;
  if (counters[COUNTERS.expanded] !== toExpand) throw miscounts("states are missing");
  const isSound = same(COUNTERS.lowerPut, COUNTERS.lowerTaken) && same(COUNTERS.ringPut, COUNTERS.ringTaken);
  if (!isSound) throw miscounts("memory was damaged");
  if (counters[COUNTERS.faults] !== 0) throw miscounts("parked work was damaged");
  let finished = 0;
  for (let slot = 0; slot < slots.length; slot += SLOT_WORDS) finished = (finished + slots[slot + 8]) >>> 0;
  const emitted = (counters[COUNTERS.ringWrite] - counters[COUNTERS.returnedTotal]) >>> 0;
  if (finished !== emitted) throw miscounts("states were not finished");
  for (let slot = 0; slot < slots.length; slot += SLOT_WORDS) {
    // Turns less misses, as the sums of their low and high halves.
    const shadow = pair(slots, slot + 4) + (pair(slots, slot + 6) << 16n);
    if (shadow !== pair(slots, slot)) throw miscounts("two counts differ");
  }
}

const pair = (words, at) => BigInt(words[at]) + (BigInt(words[at + 1]) << 32n);

/** Returns the completions and the turns of each slot. */
export function countsOf(slots) {
  const counts = [];
  for (let slot = 0; slot < slots.length; slot += SLOT_WORDS)
    counts.push({ hits: pair(slots, slot), turns: pair(slots, slot + 2) });
  return counts;
}
