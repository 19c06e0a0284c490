// The dashboard of a real coordinator in a real browser. Each test is a function below; none waits for a fixed time.
//
//   node dashboard.mjs NQUEENS CROWD [--screenshots] [--measure]
//
// --screenshots writes the pictures of the README and of docs/dashboard.md to docs/images; --measure prints the figures of benches/diary.md instead
// of testing.
import assert from "node:assert/strict";
import { spawn, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, mkdirSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [program, crowd, ...flags] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const scratch = mkdtempSync(join(tmpdir(), "nqueens-browser-"));
const images = new URL("../../docs/images/", import.meta.url).pathname;
const PATIENCE = 60_000;

/** Waits until `poll` returns a truthy value, and returns it. */
async function eventually(what, poll) {
  const began = Date.now();
  for (;;) {
    const found = await poll();
    if (found) return found;
    assert(Date.now() - began < PATIENCE, `no ${what} within ${PATIENCE / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const children = new Set();
function start(command, words) {
  const child = spawn(command, words, { stdio: ["ignore", "ignore", "inherit"] });
  children.add(child);
  child.gone = new Promise((resolve) => child.on("exit", resolve));
  child.gone.then(() => children.delete(child));
  return child;
}
const run = (...words) => execFileSync(program, words, { encoding: "utf8" });

class Coordinator {
  constructor(name, locked) {
    this.data = join(scratch, name);
    if (locked) run("coordinator", "init", "--data", this.data);
    this.at = ["127.0.0.1:0", "127.0.0.1:0"];
    this.workers = 0;
  }

  async start() {
    rmSync(join(this.data, "address.json"), { force: true });
    const [listen, dashboard] = this.at;
    this.child = start(program, ["coordinator", "--data", this.data, "--listen", listen, "--dashboard", dashboard,
      "--sync", "1s", "--lease", "60s", "--log-level", "error"]);
    const file = await eventually("coordinator", () => {
      assert.equal(this.child.exitCode, null, "the coordinator has ended");
      return existsSync(join(this.data, "address.json")) && JSON.parse(readFileSync(join(this.data, "address.json"), "utf8"));
    });
    this.url = file.dashboard;
    // A restarted coordinator has the same addresses.
    this.at = [file.address, new URL(file.dashboard).host];
    await eventually("dashboard", () => fetch(this.url, { redirect: "manual" }).then(() => true, (error) => /certificate|self-signed/i.test(String(error.cause))));
  }

  async kill() {
    this.child.kill("SIGKILL");
    await this.child.gone;
  }

  token(role, uses = 1) {
    return run("token", "create", "--data", this.data, "--role", role, "--uses", String(uses)).trim();
  }

  work(token) {
    const name = `worker-${++this.workers}`;
    const joins = token ? ["--token", token] : [];
    return start(program, ["worker", "--join", this.at[0], "--name", name, "--data", join(scratch, `${name}-of-${this.at[0].replace(":", "-")}`),
      "--threads", "1", "--device", "cpu", "--log-level", "error", ...joins]);
  }

  submit(...words) {
    return JSON.parse(run("submit", ...words, "--data", this.data, "--json")).job;
  }

  status(job) {
    const { jobs, proofs } = JSON.parse(run("status", job, "--data", this.data, "--json"));
    return jobs[0] ?? proofs[0];
  }
}

/** Opens a page that records every error in it. */
async function open(browser, url, options = {}) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1360, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.faults = [];
  page.excused = [];
  page.on("pageerror", (error) => page.faults.push(`error: ${error}`));
  page.on("console", (message) => {
    const text = message.text();
    if (message.type() === "error" && !page.excused.some((excuse) => excuse.test(text))) page.faults.push(`console: ${text} ${message.location().url}`);
  });
  await page.addInitScript(() => addEventListener("securitypolicyviolation",
    (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
  await page.goto(url);
  return page;
}
const assertNoFaults = (page) => assert.deepEqual(page.faults, []);

async function signIn(page, token, name = "") {
  await page.fill("#token", token);
  await page.fill("#name", name);
  await page.click("button[type=submit]");
}
const live = (page) => page.waitForFunction(() => document.querySelector("#connection.live"));
const text = (page, selector) => page.textContent(selector);

/** Checks that axe-core finds no violation in either theme, and that nothing is wider than the screen. */
async function accessible(page, what) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    const problems = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("\n")}`);
    assert.deepEqual(problems, [], `${what}, ${colorScheme}`);
    const { wide, narrow } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, narrow: innerWidth }));
    assert(wide <= narrow, `${what} is ${wide} wide on a screen of ${narrow}`);
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
}

/** Returns the status of a request that the page makes. */
const statusOf = (page, path, options) => page.evaluate(async ([path, options]) => (await fetch(path, options)).status, [path, options]);
const POST = { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" };

async function locked(browser) {
  const coordinator = new Coordinator("locked", true);
  await coordinator.start();
  const workers = coordinator.token("worker", 2);
  coordinator.work(workers);
  coordinator.work(workers);
  const job = coordinator.submit("count", "22");

  // Without a session there is only the sign-in page.
  const page = await open(browser, coordinator.url);
  assert.equal(new URL(page.url()).pathname, "/sign-in");
  await accessible(page, "the sign-in page");
  assertNoFaults(page);
  page.excused.push(/status of 40[13]/);
  for (const path of ["/api/me", "/api/live", "/app.js", `/api/jobs/${job}`, `/api/jobs/${job}/map/0`, `/api/jobs/${job}/history/0`,
    `/api/jobs/${job}/certificate`]) {
    assert.equal(await statusOf(page, path), 401, path);
  }
  assert.equal(await statusOf(page, `/api/jobs/${job}/pause`, POST), 401);
  await signIn(page, "nqt1.wrong");
  await page.waitForFunction(() => document.getElementById("error").textContent.includes("token"));
  const token = coordinator.token("viewer");
  await signIn(page, token, "watcher");
  await live(page);

  // A viewer sees the progress.
  await page.waitForFunction(() => /^Complete (about|not before) /.test(document.getElementById("completion").textContent));
  assert.match(await text(page, "#percent"), /^(< )?\d+(\.\d)? %$/);
  await page.waitForFunction(() => document.getElementById("log").textContent.includes("Count of 22 queens submitted by "));
  await page.waitForFunction(() => document.querySelectorAll("#week tbody tr").length > 0);
  const seen = await text(page, "#figures");
  await page.waitForFunction((seen) => document.getElementById("figures").textContent !== seen, seen);
  await page.waitForFunction(() => document.querySelectorAll("#workers tbody tr").length === 2);
  await page.waitForSelector("#history svg path.rate");
  const drawn = await page.evaluate(() => {
    const canvas = document.getElementById("map");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Set();
    for (let at = 0; at < data.length; at += 4) if (data[at + 3]) colours.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
    return colours.size;
  });
  assert(drawn >= 2, "the map has more than one colour");

  // A viewer may change nothing.
  assert.equal(await page.locator("#actions button").count(), 0);
  assert.equal(await page.getByRole("button", { name: /drain/i }).count(), 0);
  assert.equal(await statusOf(page, `/api/jobs/${job}/pause`, POST), 403);
  assert.equal(await statusOf(page, "/api/workers/worker-1/drain", POST), 403);
  assert.equal(await statusOf(page, "/api/workers/worker-1/release", POST), 403);
  assert.equal(coordinator.status(job).state, "running");
  await accessible(page, "the page of a viewer");

  // The page and its session survive a restart of the coordinator.
  page.excused.push(/ERR_(CONNECTION|INCOMPLETE|EMPTY|NETWORK|SSL|SOCKET)/);
  await coordinator.kill();
  await page.waitForSelector("#connection.lost");
  const before = await text(page, "#figures");
  await coordinator.start();
  await live(page);
  await page.waitForFunction((before) => document.getElementById("figures").textContent !== before, before);
  await page.waitForFunction(() => document.getElementById("log").textContent.includes("Coordinator started"));

  // The operator pauses, resumes, drains and, after confirming, cancels.
  const operator = await open(browser, coordinator.url);
  await signIn(operator, coordinator.token("operator"), "anna");
  await live(operator);
  await operator.getByRole("button", { name: "Pause" }).click();
  await operator.getByRole("button", { name: "Resume" }).waitFor();
  assert.equal(coordinator.status(job).state, "paused");
  await page.waitForFunction(() => document.getElementById("state").textContent === "paused");
  await page.waitForFunction(() => document.getElementById("log").textContent.includes("Count of 22 queens paused by anna"));
  await operator.getByRole("button", { name: "Resume" }).click();
  await operator.getByRole("button", { name: "Pause" }).waitFor();
  await operator.getByRole("button", { name: "Drain worker-2" }).click();
  await operator.getByRole("button", { name: "Drain it" }).click();
  await operator.waitForFunction(() => /draining/.test(document.getElementById("workers").textContent));
  await operator.getByRole("button", { name: "Cancel", exact: true }).click();
  await accessible(operator, "the question");
  await operator.getByRole("button", { name: "No" }).click();
  assert.equal(coordinator.status(job).state, "running");
  await operator.getByRole("button", { name: "Cancel", exact: true }).click();
  await operator.getByRole("button", { name: "Cancel the job" }).click();
  await operator.waitForFunction(() => document.getElementById("state").textContent === "cancelled");
  assert.equal(coordinator.status(job).state, "cancelled");

  // A count that ends, and a first solution with its board.
  const small = coordinator.submit("count", "12");
  const first = coordinator.submit("first", "20");
  await operator.evaluate((small) => { location.hash = small; }, small);
  await operator.waitForFunction(() => document.getElementById("report").textContent.replace(/\D/g, "").includes("14200"));
  assert.match(await text(operator, "#report"), /agrees with OEIS A000170/);
  await operator.evaluate((first) => { location.hash = first; }, first);
  await operator.waitForSelector("#board svg .queen");
  assert.equal(await operator.locator("#board .queen").count(), 20);
  assert.equal(await text(operator, "#columns"), coordinator.status(first).solution.join(" "));
  await certificate(operator, `first-20.proof`);
  await beautiful(operator, coordinator);
  await certificate(operator, `beautiful-70.proof`);
  await page.evaluate((first) => { location.hash = first; }, first);
  await certificate(page, `first-20.proof`);
  await page.evaluate((small) => { location.hash = small; }, small);
  await page.locator("#certificate").waitFor({ state: "hidden" });
  await accessible(operator, "the page of an operator");
  await operator.setViewportSize({ width: 390, height: 844 });
  await cards(operator);
  await accessible(operator, "the page on a telephone");
  assertNoFaults(operator);

  // Signing out ends the session, and so does revocation.
  await operator.click("#sign-out");
  await operator.waitForURL("**/sign-in");
  operator.excused.push(/status of 401/);
  assert.equal(await statusOf(operator, "/api/me"), 401);
  run("revoke", "--data", coordinator.data, "watcher");
  await page.waitForURL("**/sign-in");
  assertNoFaults(page);
  await coordinator.kill();
}

/** On a telephone each row of a table is a card with all its cells, and nothing has to be scrolled to the side. */
async function cards(page) {
  const problems = await page.evaluate(() => {
    const found = [];
    for (const region of document.querySelectorAll(".scroll")) {
      const name = region.querySelector("table").id;
      if (region.scrollWidth > region.clientWidth) found.push(`${name} is cut`);
      for (const cell of region.querySelectorAll("tbody td:not(.name, .action)")) {
        const { width, height } = cell.getBoundingClientRect();
        if (cell.checkVisibility() && (!cell.dataset.head || width < 100 || height < 10)) found.push(`${name}: ${cell.textContent}`);
      }
    }
    return found;
  });
  assert.deepEqual(problems, []);
  assert(await page.locator("#workers tbody tr").count() > 0);
}

/** Returns a stream of events with this state, as the coordinator sends it. */
const stream = (state) => ({ contentType: "text/event-stream", body: `retry: 600000\nevent: all\ndata: ${JSON.stringify(state)}\n\n` });

/** Every state of a job is shown in words: verifying, paused, a rate of zero, no estimate, and dates with their ranges. */
async function states(browser) {
  const coordinator = new Coordinator("states", false);
  await coordinator.start();
  const name = coordinator.submit("count", "18");
  const page = await open(browser, coordinator.url);
  await live(page);
  // The page is told of changes at intervals, so its first state may lack the job.
  await page.waitForSelector("#jobs .badge");
  const state = await page.evaluate(async () => {
    const reader = (await fetch("/api/live")).body.pipeThrough(new TextDecoderStream()).getReader();
    for (let read = "";;) {
      read += (await reader.read()).value;
      const whole = /^event: all\ndata: (.*)$/m.exec(read);
      if (whole && read.includes("\n\n")) {
        reader.cancel();
        return JSON.parse(whole[1]);
      }
    }
  });
  await page.close();
  const begin = Date.UTC(2026, 10, 21, 12);
  const job = { ...state.set.job[name], units: 64, units_open: 0, units_done: 16, units_verified: 4, units_per_s: 0.01, submitter: "anna" };
  const left = { left_s: 7200, left_least_s: 3600, left_most_s: 14_400 };
  const points = Array.from({ length: 20 }, (_, at) => [begin - 60_000 + 3000 * at, 16, 4]);
  const show = async (job, options) => {
    const page = await open(browser, "about:blank", { timezoneId: "UTC", ...options });
    // The stream of this test ends, which is an error for the page.
    page.excused.push(/./);
    const contribution = { anna: { workers: 2, units: 12, counting_s: 5400 }, ben: { workers: 1, units: 4, counting_s: 1800 } };
    const set = { ...state.set, job: { [name]: job }, contribution };
    await page.route("**/api/live", (route) => route.fulfill(stream({ ...state, set, now_ms: begin })));
    await page.route("**/history/*", (route) => {
      const after = Number(route.request().url().split("/").at(-1));
      return route.fulfill({ json: { points: points.filter(([at]) => at > after) } });
    });
    await page.goto(coordinator.url);
    await page.waitForSelector("#week tbody tr");
    return page;
  };
  // Every second case is shown on a telephone.
  let viewport = { width: 1360, height: 900 };
  for (const [change, completion, badge] of [
    [left, /^Complete about 14:\d\d between 13:\d\d and 16:\d\d$/, "running"],
    [{ left_s: 720_000, left_least_s: 500_000 }, /^Complete about Sun,? 29 Nov.* not before Fri,? 27 Nov.*; the rate varies too much/, "running"],
    [{ left_s: 9e7, left_least_s: 8e7, left_most_s: 1e8 }, /^Complete about .*2029 between .*2029 and .*2030$/, "running"],
    [{ left_s: 300, left_least_s: 100, units_per_s: 0, units_done: 0 }, /^Complete not before 12:01:\d\d: no unit has been counted yet\.$/, "running"],
    [{ units_per_s: 0 }, /^No unit is being counted/, "running"],
    [{ units_done: 64, recounts_due: 9, solutions: "666090624", state_sentence: "verifying (9 checks left)" },
      /^Every unit is counted; verifying \(9 checks left\)\.$/, "verifying (9 checks left)"],
    [{ state: "paused", state_sentence: "paused" }, /^Paused; no date/, "paused"],
    [{ state: "finished", state_sentence: "finished", units_done: 64, solutions: "666090624", sentence: "agrees with OEIS A000170" }, /^$/, "finished"],
  ]) {
    const page = await show({ ...job, ...change }, { viewport });
    assert.match((await page.locator("#overall").isVisible()) ? await text(page, "#completion") : "", completion);
    assert.equal(await text(page, "#state"), badge);
    assert.equal(await text(page, "#jobs .badge"), badge);
    const week = await page.locator("#week tbody tr").allTextContents();
    assert.deepEqual(week, ["anna75.0 %1 h 30 min122", "ben25.0 %30 min 00 s41"]);
    // Nothing was counted in the time of the chart: its axis has round numbers from 0.
    await page.waitForSelector("#history svg path.rate", { state: "attached" });
    const axis = await page.locator("#history text[text-anchor=end]").allTextContents();
    assert.deepEqual(axis.slice(0, 5), ["0", "0.25", "0.5", "0.75", "1"]);
    assert(!/NaN|Infinity|undefined/.test(await page.content()));
    await accessible(page, `a job that is ${badge}, ${viewport.width} wide`);
    await page.context().close();
    viewport = viewport.width === 390 ? { width: 1360, height: 900 } : { width: 390, height: 844 };
  }
  await coordinator.kill();
}

/** The page shows a most beautiful solution during the search and after the proof. */
async function beautiful(page, coordinator) {
  const job = coordinator.submit("beautiful", "70");
  await page.evaluate((job) => { location.hash = job; }, job);
  await page.waitForFunction(() => document.getElementById("title").textContent.startsWith("most beautiful solution of 70"));
  assert(!/Row|Prefixes/.test(await text(page, "#figures")), "it has no rows and no prefixes");
  await page.waitForFunction(() => document.getElementById("figures").textContent.includes("Provedmost beautiful solution"));
  assert.equal(await page.locator("#board .queen").count(), 70);
  const { solution, fingerprint } = coordinator.status(job);
  assert.equal(await text(page, "#columns"), solution.join(" "));
  const report = (await text(page, "#report")).replaceAll("\u202f", "");
  assert(report.includes(`Costs${fingerprint[0]}`), report);
  assert(!/Prefixes/.test(report), report);
}

/** The certificate of the shown proof can be downloaded, and the checker accepts it. */
async function certificate(page, name) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("Download the certificate").click()]);
  assert.equal(download.suggestedFilename(), name);
  assert.match(run("check", await download.path()), /^proved: /);
}

async function hostile(browser) {
  const evil = `<img src=x onerror=globalThis.hacked=1><b>"'&amp;`;
  const coordinator = new Coordinator("open", false);
  await coordinator.start();
  coordinator.submit("count", "22");
  const hostileWorkers = start(crowd, [coordinator.data, "3", "2", evil]);
  const page = await open(browser, coordinator.url);
  await live(page);
  await page.waitForFunction((evil) => document.querySelector("#workers tbody")?.textContent.includes(evil), evil);
  const { hacked, made } = await page.evaluate(() =>
    ({ hacked: globalThis.hacked ?? 0, made: document.querySelectorAll("main img, main script, #workers b").length }));
  assert.deepEqual({ hacked, made }, { hacked: 0, made: 0 });
  await accessible(page, "the page with a hostile worker");

  // An honest worker exposes the hostile ones; an operator releases one.
  coordinator.work();
  const caught = await page.getByRole("button", { name: /^Release node-/ }).first().getAttribute("aria-label");
  const release = page.getByRole("button", { name: caught });
  await accessible(page, "the page with a worker in quarantine");
  hostileWorkers.kill();
  await hostileWorkers.gone;
  await release.click();
  await page.getByRole("button", { name: "Release it" }).click();
  await release.waitFor({ state: "hidden" });
  assertNoFaults(page);
  await coordinator.kill();
}

async function screenshots(browser) {
  mkdirSync(images, { recursive: true });
  const coordinator = new Coordinator("pictures", false);
  await coordinator.start();
  const first = coordinator.submit("first", "24");
  const small = coordinator.submit("count", "16");
  for (let workers = 0; workers < 5; workers++) coordinator.work();
  await eventually("proof", () => coordinator.status(first).proven && coordinator.status(small).state === "finished");
  const job = coordinator.submit("count", "20");
  for (const colorScheme of ["light", "dark"]) {
    const page = await open(browser, `${coordinator.url}#${job}`, { colorScheme, viewport: { width: 1200, height: 900 } });
    await live(page);
    await page.waitForFunction(() => /^[3-9]\d\.\d %/.test(document.getElementById("percent").textContent)
      && document.querySelector("#history path.rate")?.getAttribute("d").length > 250 && document.querySelector("#by").rows.length === 6,
    null, { timeout: 600_000 });
    await page.screenshot({ path: join(images, `dashboard-${colorScheme}.png`) });
    if (colorScheme === "light") {
      await page.setViewportSize({ width: 390, height: 844 });
      await page.waitForTimeout(1500);
      await page.screenshot({ path: join(images, "dashboard-phone.png") });
      await page.screenshot({ path: join(scratch, "..", "dashboard-phone-whole.png"), fullPage: true });
      await page.setViewportSize({ width: 1200, height: 900 });
    }
    await page.evaluate((first) => { location.hash = first; }, first);
    await page.waitForSelector("#board svg .queen");
    if (colorScheme === "light") await page.screenshot({ path: join(images, "dashboard-first.png") });
    assertNoFaults(page);
  }
  const locked = new Coordinator("sign-in", true);
  await locked.start();
  const page = await open(browser, locked.url);
  await page.screenshot({ path: join(scratch, "..", "dashboard-sign-in.png") });
}

/** Seconds of processor time that a process has used. */
function cpu({ pid }) {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ").slice(11, 13).map(Number);
  return (user + system) / 100;
}
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The figures of benches/diary.md: a long job, 200 workers; windows with and without a browser in turn. */
async function measure(browser) {
  const [ROUNDS, SECONDS] = [4, 30];
  const coordinator = new Coordinator("large", false);
  await coordinator.start();
  const job = coordinator.submit("count", "26");
  const simulated = start(crowd, [coordinator.data, "200", "2"]);
  const { units } = coordinator.status(job);
  await eventually("crowd", () => coordinator.status(job).units_done > 5000);

  // High enough that the whole page is visible and drawn.
  const page = await open(browser, "about:blank", { viewport: { width: 1360, height: 2200 } });
  const session = await page.context().newCDPSession(page);
  // Processor time rather than wall time, since other programs run, too.
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const metrics = async () => Object.fromEntries((await session.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
  const drawn = () => page.evaluate(() => Number(document.documentElement.dataset.drawn));
  await page.addInitScript(() => {
    globalThis.long = [];
    new PerformanceObserver((list) => globalThis.long.push(...list.getEntries().map((entry) => entry.duration)))
      .observe({ type: "longtask", buffered: true });
  });
  const used = async () => {
    const [before, began] = [cpu(coordinator.child), Date.now()];
    await pause(SECONDS * 1000);
    return (100_000 * (cpu(coordinator.child) - before)) / (Date.now() - began);
  };
  const [idle, watched, paints, filled, opened, long] = [[], [], [], [], [], []];
  const sums = { TaskDuration: 0, ScriptDuration: 0, LayoutDuration: 0, RecalcStyleDuration: 0 };
  let updates = 0;
  for (let round = 0; round < ROUNDS; round++) {
    await page.goto("about:blank");
    idle.push(await used());
    await page.goto(coordinator.url);
    await page.waitForFunction(() => document.querySelectorAll("#workers tbody tr").length === 200);
    filled.push(await page.evaluate(() => performance.now()));
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
    opened.push(...await page.evaluate(() => globalThis.long.splice(0)));
    const [first, before] = [await drawn(), await metrics()];
    watched.push(await used());
    const [last, after] = [await drawn(), await metrics()];
    updates += last - first;
    for (const name of Object.keys(sums)) sums[name] += after[name] - before[name];
    long.push(...await page.evaluate(() => globalThis.long));
  }
  const list = (numbers, digits) => numbers.map((number) => number.toFixed(digits)).join(", ");
  const mean = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;
  const each = (name) => ((1000 * sums[name]) / updates).toFixed(1);
  console.log(`${units} units, 200 workers; ${ROUNDS} windows of ${SECONDS} s each, without and with a browser in turn`);
  console.log(`first paint after ${list(paints, 0)} ms; all 200 workers are shown after ${list(filled, 0)} ms`);
  console.log(`main thread, processor time: ${each("TaskDuration")} ms an update (scripts ${each("ScriptDuration")}, layout ${each("LayoutDuration")}, `
    + `style ${each("RecalcStyleDuration")}), ${updates} updates; tasks over 50 ms: ${long.length} (longest ${list([Math.max(0, ...long)], 0)} ms), `
    + `while it opens ${list(opened, 0)} ms`);
  console.log(`coordinator, user and system, in % of a core: ${list(idle, 2)} without, ${list(watched, 2)} with: ${(mean(watched) - mean(idle)).toFixed(2)} more`);
  simulated.kill();
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
try {
  const tests = flags.includes("--measure") ? [measure] : flags.includes("--screenshots") ? [screenshots] : [locked, states, hostile];
  for (const test of tests) {
    await test(browser);
    console.log(`${test.name}: ok`);
  }
} finally {
  await browser.close();
  children.forEach((child) => child.kill("SIGKILL"));
  rmSync(scratch, { recursive: true, force: true });
}
