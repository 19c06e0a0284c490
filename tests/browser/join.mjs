// The page for visitors of a real coordinator, in a real browser with the WebGPU of SwiftShader. Each test is a function below;
// none waits for a fixed time.
//
//   node join.mjs NQUEENS [--screenshots]
//
// --screenshots writes the picture of docs/join.md to docs/images.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [program, ...flags] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const scratch = mkdtempSync(join(tmpdir(), "nqueens-join-"));
const images = new URL("../../docs/images/", import.meta.url).pathname;
const PATIENCE = 120_000;
const BROWSER = {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  // The watchdog would end the process while it compiles a shader for long.
  args: ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--ignore-gpu-blocklist", "--disable-gpu-watchdog"],
};

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

const run = (...words) => execFileSync(program, words, { encoding: "utf8" });
const children = new Set();

class Coordinator {
  constructor(name, ...options) {
    this.data = join(scratch, name);
    this.options = options;
  }

  async start() {
    const words = ["coordinator", "--data", this.data, "--listen", "127.0.0.1:0", "--join-page", "127.0.0.1:0", "--sync", "1s", "--lease", "4s",
      "--log-level", "error", ...this.options];
    this.child = spawn(program, words, { stdio: ["ignore", "ignore", "inherit"] });
    children.add(this.child);
    this.url = await eventually("coordinator", () => {
      assert.equal(this.child.exitCode, null, "the coordinator has ended");
      const file = join(this.data, "address.json");
      return existsSync(file) && JSON.parse(readFileSync(file, "utf8")).join_page;
    });
  }

  work() {
    const { address } = JSON.parse(readFileSync(join(this.data, "address.json"), "utf8"));
    const worker = spawn(program, ["worker", "--join", address, "--name", "honest", "--data", `${this.data}-worker`, "--threads", "1",
      "--device", "cpu", "--log-level", "error"], { stdio: "ignore" });
    children.add(worker);
    return worker;
  }

  submit(...words) {
    return JSON.parse(run("submit", "count", ...words, "--data", this.data, "--json")).job;
  }

  status(job) {
    return JSON.parse(run("status", job, "--data", this.data, "--json")).jobs[0];
  }

  finished(job) {
    return eventually(`end of ${job}`, () => {
      const status = this.status(job);
      return status.state === "finished" && status;
    });
  }
}

/** Opens the page in a context of its own, and records every error in it. */
async function open(browser, url, { change, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1000, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(`error: ${error}`));
  page.on("console", (message) => message.type() === "error" && page.faults.push(`console: ${message.text()} ${message.location().url}`));
  await page.addInitScript(() => addEventListener("securitypolicyviolation",
    (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
  // A module that somebody has changed.
  for (const [file, edit] of Object.entries(change ?? {}))
    await context.route(`**/${file}`, async (route) => {
      const response = await route.fetch();
      const before = await response.text();
      const after = edit(before);
      assert.notEqual(before, after, `${file} is as it was`);
      await route.fulfill({ response, body: after });
    });
  await page.goto(`${url}?software`);
  return page;
}
const text = (page, id) => page.textContent(`#${id}`);
/** Waits until an element has a text. */
const shows = (page, id, pattern) => eventually(`${id} like ${pattern}`, async () => pattern.test(await text(page, id)));
const counting = (page) => shows(page, "state", /^Counting/);
const notice = (page, pattern) => shows(page, "notice", pattern);
const stopped = (page) => shows(page, "state", /^Not counting\.$/);

/** Two guests count a published and an unpublished total, which nobody but the coordinator checks. */
async function guests(browser) {
  const coordinator = new Coordinator("guests", "--guests", "8");
  await coordinator.start();
  const published = coordinator.submit("12");
  const completion = coordinator.submit("12", "--place", "b3");
  const pages = [await open(browser, coordinator.url), await open(browser, coordinator.url)];
  for (const page of pages) {
    // It never starts by itself.
    assert.equal(await text(page, "state"), "Not counting.");
    await page.click("#start");
  }
  const first = await coordinator.finished(published);
  assert.equal(first.solutions, "14200");
  const second = await coordinator.finished(completion);
  assert.equal(second.solutions, JSON.parse(run("count", "12", "--place", "b3", "--json")).solutions);
  for (const status of [first, second]) {
    assert.equal(status.guest_units, status.units);
    for (const { worker, units } of status.by) assert(units === 0 || worker.startsWith("guest:"), `${worker} counted ${units}`);
  }
  assert.equal(second.units_audited, second.units, "the coordinator has counted every unit again");
  // What the pages show follows with their next calls.
  const sum = async (id) => (await Promise.all(pages.map((page) => text(page, id)))).reduce((all, value) => all + Number(value), 0);
  const all = first.units + second.units;
  await eventually("record of all units", async () => (await sum("units")) === all && (await sum("confirmed")) === all);
  for (const page of pages) {
    assert.match(await text(page, "gpu"), /swiftshader/i);
    assert.deepEqual(page.faults, []);
  }
  for (const page of pages) await page.context().close();
  return coordinator;
}

/** A page that is closed, a browser that is killed and a device that is lost cost no unit. */
async function interruptions(browser) {
  const coordinator = new Coordinator("interruptions", "--guests", "8");
  await coordinator.start();
  const job = coordinator.submit("13");
  const closed = await open(browser, coordinator.url);
  await closed.click("#start");
  await counting(closed);
  await closed.context().close();

  const lost = await open(browser, coordinator.url);
  await lost.click("#start");
  await counting(lost);
  await lost.evaluate(() => globalThis.nqueens.message({ type: "lose" }));
  await notice(lost, /taken away|GPU was lost/);
  assert.equal(await text(lost, "state"), "Not counting.");
  assert(await lost.isEnabled("#start"));
  await lost.context().close();

  const server = await chromium.launchServer(BROWSER);
  const other = await chromium.connect(server.wsEndpoint());
  const killed = await open(other, coordinator.url);
  await killed.click("#start");
  await counting(killed);
  await server.kill();

  const last = await open(browser, coordinator.url);
  await last.click("#start");
  // A pause stops the count, and the button says so.
  await counting(last);
  await last.click("#pause");
  await shows(last, "state", /^Paused\.$/);
  assert.equal(await last.getAttribute("#pause", "aria-pressed"), "true");
  await last.click("#pause");
  await counting(last);
  await last.click("#stop");
  await stopped(last);
  await last.context().close();
  // A worker counts the rest, which takes a page on a software driver long.
  const worker = coordinator.work();
  const status = await coordinator.finished(job);
  assert.equal(status.solutions, "73712");
  assert(status.guest_units > 0 && status.guest_units < status.units);
  worker.kill();
}

/** A page that lies is shut out, and the total is right. */
async function liars(browser) {
  const coordinator = new Coordinator("liars", "--guests", "8");
  await coordinator.start();
  const job = coordinator.submit("12");
  // Its counts agree with their residues.
  const lie = "for (let s = 0; s < words.length; s += 12) { words[s]++; words[s + 2]++; words[s + 4]++; } audit(";
  const page = await open(browser, coordinator.url, { change: { "gpu.js": (code) => code.replace("    audit(batch,", `    ${lie}batch,`) } });
  await page.click("#start");
  await notice(page, /no longer believes|refused a result/);
  assert.equal(await text(page, "state"), "Not counting.");
  // Pressing the button again does not help.
  await page.click("#start");
  await notice(page, /no longer believes/);
  await page.context().close();
  const worker = coordinator.work();
  const status = await coordinator.finished(job);
  assert.equal(status.solutions, "14200");
  assert.equal(status.guest_units, 0);
  worker.kill();
}

/** Checks that axe-core finds no serious or critical violation in either theme, on a screen and a telephone. */
async function accessible(page, what) {
  for (const width of [1000, 360]) {
    await page.setViewportSize({ width, height: 800 });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
      const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      assert.deepEqual(bad.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join("\n")}`), [], `${what}, ${colorScheme}, ${width}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert(wide <= width, `${what} is ${wide} wide on a screen of ${width}`);
    }
  }
}

/** What a visitor sees and can do: sizes, first paint, keyboard, without a GPU, without guests, the benchmark. */
async function visitors(browser, coordinator) {
  const page = await open(browser, coordinator.url);
  const paint = await eventually("first paint", () =>
    page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime));
  const bytes = await page.evaluate(() =>
    performance.getEntriesByType("resource").reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0));
  assert(bytes < 150_000, `${bytes} bytes`);
  console.log(`the page: first paint after ${paint.toFixed(0)} ms, ${bytes} bytes without the shaders`);
  await accessible(page, "the page");
  // From the keyboard alone.
  await page.focus("#start");
  await page.keyboard.press("Enter");
  await shows(page, "state", /^Nothing to count/);
  await accessible(page, "the page while it waits for work");
  await page.focus("#share");
  await page.keyboard.press("ArrowLeft");
  assert.match(await text(page, "share-text"), /90/);
  // Another tab of the same browser does not count, too.
  const second = await page.context().newPage();
  await second.goto(`${coordinator.url}?software`);
  await second.click("#start");
  await notice(second, /Another tab/);
  await second.close();
  await page.focus("#stop");
  await page.keyboard.press("Enter");
  await stopped(page);

  await page.selectOption("#size", "12");
  await page.click("#measure");
  await shows(page, "measured", /solutions a second \(n = 12/);
  await accessible(page, "the page with a measurement");
  const saved = async (button, name) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
    const path = join(scratch, name);
    await download.saveAs(path);
    return path;
  };
  const file = await saved("#save-json", "webgpu.json");
  const chart = join(scratch, "chart.svg");
  const table = run("bench", "12", "--rounds", "1", "--threads", "1", "--device", "cpu", "--compare", file, "--svg", chart);
  assert.match(table, /WebGPU: .*12 +1 /);
  assert.match(readFileSync(chart, "utf8"), /WebGPU/);
  const picture = readFileSync(await saved("#save-picture", "webgpu.png"));
  assert.equal(picture.subarray(1, 4).toString(), "PNG");
  if (flags.includes("--screenshots")) {
    await page.setViewportSize({ width: 900, height: 900 });
    await page.emulateMedia({ colorScheme: "light" });
    await page.screenshot({ path: `${images}join-page.png` });
  }
  assert.deepEqual(page.faults, []);
  await page.context().close();

  // A software driver is not used unless a test asks for it, and a browser without WebGPU says so.
  const context = await browser.newContext();
  const plain = await context.newPage();
  await plain.goto(coordinator.url);
  await plain.click("#start");
  await notice(plain, /in software/);
  await context.close();
  const none = await open(browser, coordinator.url, { change: { "gpu.js": (code) => code.replaceAll("navigator.gpu", "navigator.none") } });
  await none.click("#start");
  await notice(none, /has no WebGPU/);
  await none.context().close();

  const closed = new Coordinator("closed");
  await closed.start();
  const uninvited = await open(browser, closed.url);
  await notice(uninvited, /admits no guests/);
  assert(await uninvited.isDisabled("#start"));
  await uninvited.context().close();
}

const browser = await chromium.launch(BROWSER);
try {
  const timed = async (what, work) => {
    const began = Date.now();
    const result = await work();
    console.log(`${what}: ${((Date.now() - began) / 1000).toFixed(1)} s`);
    return result;
  };
  const coordinator = await timed("two guests count 12 queens and a completion", () => guests(browser));
  await timed("interruptions", () => interruptions(browser));
  await timed("liars", () => liars(browser));
  await timed("what visitors see", () => visitors(browser, coordinator));
} finally {
  await browser.close();
  for (const child of children) child.kill("SIGKILL");
  rmSync(scratch, { recursive: true, force: true });
}
