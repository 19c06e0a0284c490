// Runs in a dedicated Worker: takes units, counts them on the GPU and delivers the results.
//
// The page sends {type: "start", session, boot, share, allowSoftware}, {type: "share", share}, {type: "pause", paused},
// {type: "stop"} and {type: "benchmark", n}. The Worker sends {type: "state", …}, {type: "counted", …}, {type: "session"}
// (a new one is needed), {type: "ended", reason} and {type: "benchmark", …}.
import { benchmark } from "./benchmark.js";
import { Gpu, GpuError, Stopped } from "./gpu.js";
import * as protocol from "./protocol.js";

// A unit that takes longer than this between two syncs is not lost: leases last much longer. In ms.
const MOST_BETWEEN_SYNCS = 10_000;
const RETRY_MS = 5_000, BUSY_MS = 1_000;

const say = (type, fields = {}) => postMessage({ type, ...fields });

let share = 1, paused = false, stopping = false, wake = () => {};
let gpu = null;

/** Waits for a time in ms, or until the page has said something. */
function wait(ms) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => { clearTimeout(timer); resolve(); };
  });
}

/** Waits until counting may go on. */
async function whileAllowed() {
  while (paused && !stopping) {
    say("state", { state: "paused" });
    await wait(1e9);
  }
  if (stopping) throw new Stopped();
}

/** The leases of this page: by number, with the units that are left. */
class Leases {
  #leases = new Map();

  update(leases, cancel) {
    cancel.forEach((attempt) => this.#leases.delete(attempt));
    for (const lease of leases) {
      const known = this.#leases.get(lease.attempt);
      const first = BigInt(lease.first);
      const inLease = (unit) => unit >= first && unit < first + BigInt(lease.units);
      const units = Array.from({ length: lease.units }, (_, i) => first + BigInt(i));
      this.#leases.set(lease.attempt, { lease, left: known ? known.left.filter(inLease) : units });
    }
    for (const [attempt, { left }] of this.#leases) if (left.length === 0) this.#leases.delete(attempt);
  }

  /** Returns what is held, for a sync; `current` is being counted. */
  held(current) {
    const isOf = (lease) => Number(current?.lease.attempt === lease.attempt);
    const all = [...this.#leases.values()];
    return all.map(({ lease, left }) => ({ lease, left: left.length, unstarted: left.length - isOf(lease) }));
  }

  /** Returns the next unit: of a check first. */
  next() {
    const all = [...this.#leases.values()].sort((a, b) => Number(b.lease.mirrored) - Number(a.lease.mirrored));
    return all.length ? { lease: all[0].lease, unit: all[0].left[0] } : null;
  }

  done({ lease, unit }) {
    const entry = this.#leases.get(lease.attempt);
    if (!entry) return;
    entry.left = entry.left.filter((other) => other !== unit);
    if (entry.left.length === 0) this.#leases.delete(lease.attempt);
  }

  has({ lease, unit }) {
    return this.#leases.get(lease.attempt)?.left.includes(unit) ?? false;
  }
}

class PageWorker {
  leases = new Leases();
  rates = new Map();
  syncAt = 0;
  job = "";
  current = null;

  constructor(session, boot) {
    Object.assign(this, { session, boot });
  }

  async sync() {
    const body = { boot: this.boot, wants: true, held: this.leases.held(this.current), device: gpu?.name ?? "",
      rates: [...this.rates].map(([job, units_per_s]) => ({ job, units_per_s })) };
    const answer = await protocol.sync(this.session, body);
    this.leases.update(answer.leases, answer.cancel);
    this.nextSync = answer.next_sync_ms * (0.8 + 0.4 * Math.random());
    this.syncAt = performance.now() + Math.min(this.nextSync, MOST_BETWEEN_SYNCS);
    say("counted", { units: answer.units, confirmed: answer.confirmed });
    if (answer.quarantined)
      throw new GpuError("quarantined", `The coordinator no longer believes this page: ${answer.quarantined}`);
  }

  async count(next) {
    const { lease, unit } = next;
    const name = { attempt: lease.attempt, unit: String(unit) };
    const job = `${lease.job} ${lease.mirrored}`;
    if (this.job !== job) {
      this.job = "";
      await gpu.setTables(await protocol.tables(this.session, name));
      this.job = job;
    }
    const { batches, bytes } = await protocol.batches(this.session, name);
    say("state", { state: "counting", unit: String(unit), bytes });
    const began = performance.now();
    let busy = 0;
    const pace = async (elapsed) => {
      busy += elapsed;
      if (share < 1) await wait(elapsed * (1 / share - 1));
      await whileAllowed();
      if (performance.now() >= this.syncAt) await this.sync();
      if (!this.leases.has(next)) throw new Cancelled();
    };
    const results = [];
    for (const batch of batches) {
      const { counters, slots } = await gpu.count(batch, pace);
      results.push({ counters: protocol.base64(counters), slots: protocol.base64(slots) });
    }
    const elapsed_s = (performance.now() - began) / 1000;
    if (lease.sub_ranges.length === 0) this.rates.set(lease.job, 1 / Math.max(elapsed_s, 1e-3));
    const { verdict } = await this.deliver(next, { ...name, elapsed_s, batches: results });
    this.leases.done(next);
    say("counted", { verdict, busy_s: busy / 1000 });
    if (verdict === "refused" || verdict === "quarantined")
      throw new GpuError("quarantined", "The coordinator refused a result of this page, so it has stopped.");
  }

  /** Delivers a result; while the coordinator cannot be reached, again and again. */
  async deliver(next, body) {
    for (let mayAsk = true; ;) {
      try {
        return await protocol.result(this.session, body);
      } catch (error) {
        if (error.status === 409 && mayAsk) {
          // The coordinator was restarted. It recognises its lease, and must prepare the unit again.
          mayAsk = false;
          await this.sync();
          if (!this.leases.has(next)) throw error;
          await protocol.batches(this.session, { attempt: body.attempt, unit: body.unit });
        } else if (isTemporary(error)) {
          await this.offline(error);
        } else {
          throw error;
        }
      }
    }
  }

  async offline(error) {
    say("state", { state: "offline", reason: error.message });
    await wait((error.status === 429 ? BUSY_MS : RETRY_MS) * (0.8 + 0.4 * Math.random()));
    await whileAllowed();
  }

  async step() {
    await whileAllowed();
    const next = this.leases.next();
    if (!next || performance.now() >= this.syncAt) {
      await this.sync();
      if (!this.leases.next()) {
        say("state", { state: "idle" });
        await wait(this.nextSync);
        return;
      }
    }
    const unit = (this.current = this.leases.next());
    try {
      await this.count(unit);
    } catch (error) {
      // The unit is gone: another has it, or it cannot be counted here.
      const isGone = error instanceof Cancelled || [409, 410, 422, 429].includes(error.status);
      if (!isGone) throw error;
      this.leases.done(unit);
      this.syncAt = 0;
      if (error.status === 422) throw new GpuError("miscounts", "This GPU or its driver miscounts, so nothing of it is used.");
      if (error.status === 429) await wait(1_000);
    } finally {
      this.current = null;
    }
  }

  async giveBack(reason) {
    const next = this.leases.next();
    if (!next) return;
    const name = { attempt: next.lease.attempt, unit: String(next.unit) };
    await protocol.fail(this.session, { ...name, detail: reason }).catch(() => {});
  }
}

class Cancelled extends Error {}

const isTemporary = (error) => error instanceof protocol.CallError && [0, 408, 429, 500, 502, 503, 504].includes(error.status);

async function start({ session, boot, allowSoftware }) {
  const worker = new PageWorker(session, boot);
  try {
    let lostReason = null;
    gpu = await Gpu.open({ allowSoftware, lost: (reason) => { lostReason = reason; wake(); } });
    say("state", { state: "ready", gpu: gpu.name });
    for (;;) {
      try {
        if (lostReason) throw new GpuError("lost", lostReason);
        await worker.step();
      } catch (error) {
        if (lostReason) throw new GpuError("lost", lostReason);
        if (error.status === 401) return say("session");
        if (!isTemporary(error)) throw error;
        await worker.offline(error);
      }
    }
  } catch (error) {
    if (error instanceof Stopped) return say("ended", { reason: "" });
    const known = error instanceof GpuError || error instanceof protocol.CallError;
    if (error instanceof GpuError) await worker.giveBack(error.message);
    say("ended", { reason: known ? error.message : `Something is wrong with this page: ${error}`, kind: error.kind ?? "" });
  } finally {
    gpu?.close();
    gpu = null;
  }
}

async function runBenchmark({ n, allowSoftware }) {
  let own = null;
  try {
    own = await Gpu.open({ allowSoftware, lost: () => {} });
    const progress = (round, rounds) => say("benchmark", { round, rounds });
    const line = await benchmark(own, n, progress, async () => { if (stopping) throw new Stopped(); });
    say("benchmark", { line });
  } catch (error) {
    say("benchmark", { reason: error instanceof Stopped ? "" : error.message });
  } finally {
    own?.close();
  }
}

addEventListener("message", ({ data }) => {
  switch (data.type) {
    case "start":
      share = data.share;
      start(data);
      break;
    case "share":
      share = data.share;
      break;
    case "pause":
      paused = data.paused;
      wake();
      break;
    case "stop":
      stopping = true;
      wake();
      break;
    case "benchmark":
      runBenchmark(data);
      break;
    // For tests: what happens when the device is lost.
    case "lose":
      gpu?.device.destroy();
      break;
  }
});
