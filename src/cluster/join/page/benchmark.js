// Measures a GPU with an empty board whose number of solutions is published. The result is a file as nqueens bench --json
// prints it, so that nqueens bench --compare puts it beside others.
import { countsOf } from "./gpu.js";
import { benchmarkBoard, campaign } from "./protocol.js";

const ROUNDS = 5;

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** Returns what the browser says of itself: its name and version, and the system. */
export function browserName(agent = navigator.userAgent) {
  const names = [["Edg", "Edge"], ["OPR", "Opera"], ["Firefox", "Firefox"], ["Chrome", "Chrome"], ["Version", "Safari"]];
  const found = names.map(([key, name]) => [name, agent.match(new RegExp(`${key}/([\\d.]+)`))]).find(([, match]) => match);
  return found ? `${found[0]} ${found[1][1]}` : "unknown browser";
}
const systemName = (agent = navigator.userAgent) => (agent.match(/\(([^)]*)\)/)?.[1] ?? "unknown system").slice(0, 60);

/** Counts the board once, and returns the time in s, the solutions and the turns. */
async function round(gpu, board, pace) {
  const began = performance.now();
  let thirds = 0n, turns = 0n;
  for (const batch of board.batches) {
    const { slots } = await gpu.count(batch, pace);
    countsOf(slots).forEach((count, i) => {
      thirds += count.hits * BigInt(batch.weights[i]);
      turns += count.turns;
    });
  }
  return { s: (performance.now() - began) / 1000, solutions: thirds / 3n, exact: thirds % 3n === 0n, turns };
}

/** Measures `gpu` on n queens. `progress(round, rounds)` is called before each round. Returns the benchmark file as an object. */
export async function benchmark(gpu, n, progress, pace) {
  const board = await benchmarkBoard(n);
  const { version } = await campaign();
  await gpu.setTables(board.tables);
  const runs = [];
  // The first round also compiles and tunes, and is not timed.
  for (let number = 0; number <= ROUNDS; number++) {
    progress(number, ROUNDS);
    const run = await round(gpu, board, pace);
    if (!run.exact || run.solutions !== board.solutions)
      throw new Error(`This GPU counts ${run.solutions} solutions for n = ${n}, which is wrong.`);
    if (number > 0) runs.push(run);
  }
  const times = runs.map((run) => run.s);
  const elapsed_s = { median: median(times), min: Math.min(...times), max: Math.max(...times) };
  const name = `WebGPU: ${gpu.name}`;
  return {
    n,
    rounds: ROUNDS,
    machine: { version, commit: null, date: new Date().toISOString().slice(0, 10), processor: browserName(),
      cores: navigator.hardwareConcurrency ?? 1, system: systemName(),
      devices: [{ id: "webgpu", name: gpu.name, driver: browserName() }] },
    contestants: [{ name, kind: "gpu", n, threads: 1, elapsed_s, solutions: String(board.solutions),
      solutions_per_s: Number(board.solutions) / elapsed_s.median,
      nodes_per_s: median(runs.map((run) => Number(run.turns))) / elapsed_s.median,
      ratio_to_textbook: null, energy_j: null, published: "agrees" }],
  };
}
