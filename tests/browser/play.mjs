// The page to play with, in a real browser. Each test is a function below; none waits for a fixed time.
//
//   node play.mjs NQUEENS FOLDER [--screenshots]
//
// FOLDER is what crates/play/build.sh wrote. --screenshots writes the pictures of docs/play.md to docs/images, and those of
// the other views to FOLDER, instead of testing.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, extname, join } from "node:path";
import { chromium } from "playwright-core";

const [program, folder, ...flags] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const images = new URL("../../docs/images/", import.meta.url).pathname;
const BOARDS = 200;
const KINDS = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".wasm": "application/wasm" };

const server = createServer((request, response) => {
  const name = basename(new URL(request.url, "http://localhost").pathname) || "index.html";
  try {
    const bytes = readFileSync(join(folder, name));
    response.writeHead(200, { "Content-Type": KINDS[extname(name)] }).end(bytes);
  } catch {
    response.writeHead(404).end();
  }
});

/** Opens the page with a fragment. Every error in it is recorded. */
async function open(browser, fragment = "", { base = `http://localhost:${server.address().port}/`, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(`error: ${error}`));
  page.on("console", (message) => { if (message.type() === "error") page.faults.push(`console: ${message.text()}`); });
  await page.goto(`${base}${fragment}`);
  return page;
}
const assertNoFaults = (page) => assert.deepEqual(page.faults, []);
const text = (page, selector) => page.textContent(selector);

/** Waits until a count has ended, and returns the text of the live region without its spaces between digits. */
async function counted(page) {
  await page.waitForFunction(() => !document.getElementById("board-view").hasAttribute("aria-busy")
    && !/Counting|^$/.test(document.getElementById("status").textContent));
  return (await text(page, "#status")).replaceAll("\u202f", "");
}

/** Numbers from a seed (mulberry32), so that a failure can be repeated. */
function generator(seed) {
  return (below) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** The counts of 200 random boards, set by links, equal those of the program. */
async function counts(browser) {
  const random = generator(1850);
  const page = await open(browser);
  let solvable = 0, conflicts = 0;
  for (let board = 0; board < BOARDS; board++) {
    const n = 4 + random(7);
    const squares = new Set(Array.from({ length: 1 + random(n) }, () => `${1 + random(n)}.${1 + random(n)}`));
    const placed = [...squares].filter((_, at) => at < random(4)), blocked = [...squares].filter((name) => !placed.includes(name));
    const list = (name, found) => (found.length ? `&${name}=${found.join("-")}` : "");
    const link = `#n=${n}${list("queens", placed)}${list("blocked", blocked)}`;
    await page.evaluate((link) => { document.getElementById("status").textContent = ""; location.hash = link; }, link);
    const status = await counted(page);
    const flag = (name, found) => (found.length ? [`--${name}`, found.map((name) => name.replace(".", ",")).join(" ")] : []);
    const report = JSON.parse(execFileSync(program, ["count", String(n), ...flag("place", placed), ...flag("block", blocked), "--device", "cpu", "--json"], { encoding: "utf8" }));
    const shown = (await text(page, "#count")).replaceAll("\u202f", "");
    assert.equal(shown, report.solutions, link);
    conflicts += "conflict" in report;
    solvable += report.solutions !== "0";
    assert(report.conflict ? status.includes("attack each other")
      : status.includes(report.solutions === "1" && placed.length === n ? "a solution!" : `${report.solutions} completion`), `${link}: ${status}`);
    assert.equal(await page.locator("#board .square:not(.blocked) use[href='#queen']").count(), placed.length);
    assert.equal(await page.locator("#board .blocked").count(), blocked.length);
  }
  assert(solvable > BOARDS / 3 && conflicts > 5, `${solvable} boards have completions, ${conflicts} conflicts`);
  assertNoFaults(page);
  console.log(`${BOARDS} random boards: ${solvable} with completions, ${conflicts} with queens that attack each other`);
}

/** Queens are placed, removed and blocked with the keyboard alone; the live region tells the result. */
async function keyboard(browser) {
  const page = await open(browser);
  assert.match(await counted(page), /^0 queens placed, 92 completions left\.$/);
  const square = (row, column) => page.locator(`#board [data-row="${row}"][data-column="${column}"]`);
  await square(1, 1).focus();
  await page.keyboard.press("Space");
  assert.match(await counted(page), /^1 queen placed, 4 completions left\.$/);
  assert.match(await square(1, 1).getAttribute("aria-label"), /^row 1, column 1: queen$/);
  assert.match(await square(5, 5).getAttribute("aria-label"), /attacked by the queen on 1,1$/);
  // The first solution, 1 5 8 6 3 7 2 4, by the arrow keys.
  for (const [row, column] of [[2, 5], [3, 8], [4, 6], [5, 3], [6, 7], [7, 2]]) {
    await page.keyboard.press("ArrowDown");
    const from = Number(await page.evaluate(() => document.activeElement.dataset.column));
    for (let step = 0; step < Math.abs(column - from); step++) await page.keyboard.press(column > from ? "ArrowRight" : "ArrowLeft");
    assert.equal(await page.evaluate(() => `${document.activeElement.dataset.row}.${document.activeElement.dataset.column}`), `${row}.${column}`);
    await page.keyboard.press("Space");
  }
  assert.match(await counted(page), /^7 queens placed, 1 completion left\.$/);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Home");
  for (let step = 0; step < 3; step++) await page.keyboard.press("ArrowRight");
  await page.keyboard.press("x");
  assert.match(await counted(page), /^7 queens placed, 1 square blocked, 0 completions left\.$/);
  await page.keyboard.press("Enter");
  assert.match(await counted(page), /^8 queens placed, a solution!$/);
  await page.keyboard.press("Delete");
  assert.match(await counted(page), /1 completion left/);
  await page.getByRole("button", { name: "Undo" }).click();
  assert.match(await counted(page), /a solution!/);

  // A link restores the board.
  const again = await open(browser, new URL(page.url()).hash);
  assert.match(await counted(again), /a solution!/);
  await again.getByRole("button", { name: "Clear" }).click();
  assert.match(await counted(again), /92 completions/);
  assertNoFaults(page);
  assertNoFaults(again);
}

/** A telephone: taps place queens and block squares; a completion is shown. */
async function touch(browser) {
  const page = await open(browser, "#n=6", { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  assert.match(await counted(page), /4 completions/);
  await page.locator('#board [data-row="1"][data-column="2"]').tap();
  assert.match(await counted(page), /1 queen placed, 1 completion left/);
  await page.locator('#board [data-row="2"][data-column="2"]').tap();
  assert.match(await counted(page), /row 1, column 2 and on row 2, column 2 attack each other/);
  await page.locator('#board [data-row="2"][data-column="2"]').tap();
  await page.getByText("a blocked square").tap();
  await page.locator('#board [data-row="6"][data-column="6"]').tap();
  assert.match(await counted(page), /1 square blocked, 1 completion/);
  await page.getByRole("button", { name: "Complete it" }).tap();
  await page.locator("#board .guess").first().waitFor();
  assert.equal(await page.locator("#board .guess").count(), 5);
  assertNoFaults(page);
}

/** Counts up to n = 14 end soon; larger ones are honest about what they do not know, and a newer one replaces an older. */
async function large(browser) {
  const page = await open(browser, "#n=14");
  assert.match(await counted(page), /365596 completions left/);
  await page.evaluate(() => { location.hash = "#n=32"; });
  await page.waitForFunction(() => document.querySelectorAll("#board .square").length === 1024);
  await page.evaluate(() => { location.hash = "#n=9"; });
  await page.waitForFunction(() => document.getElementById("count").textContent === "352");
  await page.evaluate(() => { document.getElementById("status").textContent = ""; location.hash = "#n=20"; });
  assert.match(await counted(page), /too many positions to count at once\. At least \d+ completions are left/);
  assert(await page.getByRole("button", { name: "Count for up to a minute" }).isVisible());
  // Few open rows: the count is exact although the board is large.
  const columns = execFileSync(program, ["solve", "24"], { encoding: "utf8", stdio: "pipe" }).trim().split(" ").map(Number);
  const queens = columns.slice(0, 14).map((column, row) => `${row + 1}.${column}`).join("-");
  await page.evaluate((link) => { document.getElementById("status").textContent = ""; location.hash = link; }, `#n=24&queens=${queens}`);
  const exact = JSON.parse(execFileSync(program, ["count", "24", "--place", queens.replaceAll(".", ",").replaceAll("-", " "), "--json", "--device", "cpu"], { encoding: "utf8" }));
  assert.match(await counted(page), new RegExp(`14 queens placed, ${exact.solutions} completions? left`));
  // The squares show how many completions use them.
  await page.evaluate(() => { document.getElementById("status").textContent = ""; location.hash = "#n=8"; });
  await counted(page);
  await page.selectOption("#overlay", "count");
  assert.equal(await text(page, '#board [data-row="1"][data-column="1"]'), "4");
  assert.equal(await text(page, '#board [data-row="1"][data-column="4"]'), "18");
  await page.selectOption("#overlay", "relaxation");
  await page.waitForFunction(() => document.getElementById("overlay-note").textContent.includes("8.00 of 8"));
  await page.fill("#size", "99");
  await page.keyboard.press("Enter");
  assert.match(await text(page, "#status"), /from 1 to 32/);
  assertNoFaults(page);
}

/** Every method is stepped through to its solutions, forward and back, by hand and by itself. */
async function methods(browser) {
  const page = await open(browser);
  await page.getByRole("tab", { name: "Methods" }).click();
  // The nodes that `nqueens list` tries, and all 4 solutions; branch and bound ends with the first.
  for (const [method, solutions] of [["backtracking", 4], ["columns", 4], ["propagation", 4], ["relaxation", 1]]) {
    const before = await text(page, "#method-text");
    await page.selectOption("#method", method);
    if (method !== "backtracking") await page.waitForFunction((before) => document.getElementById("method-text").textContent !== before, before);
    await page.waitForFunction((solutions) => document.getElementById("run-text").textContent.includes(`${solutions} solution`), solutions);
    await page.waitForFunction(() => document.getElementById("position").value === "0");
    const begin = await text(page, "#step-text");
    await page.getByRole("button", { name: "Step", exact: true }).click();
    assert.notEqual(await text(page, "#step-text"), begin);
    await page.getByRole("button", { name: "Back" }).click();
    assert.equal(await text(page, "#step-text"), begin);
    for (let found = 1; found <= solutions; found++) {
      await page.getByRole("button", { name: "Next solution" }).click();
      assert.match(await text(page, "#step-text"), new RegExp(`^Solution ${found}: `));
      assert.equal(await page.locator("#watch-board use[href='#queen']").count(), 6);
    }
    await page.getByRole("button", { name: "Restart" }).click();
    await page.locator("#speed").fill("24");
    await page.getByRole("button", { name: "Play" }).click();
    await page.waitForFunction(() => document.querySelector("#step-text.solution") && document.getElementById("play").textContent === "Play");
    assert.match(await text(page, "#step-text"), /^Solution 1: /);
  }
  // A method can begin with the board of the first view.
  await page.evaluate(() => { location.hash = "#n=5&queens=1.1&blocked=3.5"; });
  await page.check("#from-board");
  await page.selectOption("#method", "propagation");
  await page.waitForFunction(() => document.querySelectorAll("#watch-board .square").length === 25);
  await page.waitForFunction(() => document.getElementById("run-text").textContent.includes("1 solution"));
  assert.equal(await page.locator("#watch-board .blocked").count(), 1);
  assertNoFaults(page);
}

/** The gallery shows what `records` has, and the fundamental solutions have their orbits. */
async function gallery(browser) {
  const page = await open(browser);
  await page.getByRole("tab", { name: "Gallery" }).click();
  for (const [kind, command, n] of [["most beautiful", "beautiful", 16], ["first", "first", 12]]) {
    await page.getByLabel(kind, { exact: true }).check();
    await page.fill("#record-size", String(n));
    await page.waitForFunction(([kind, n]) => document.getElementById("record-title").textContent.includes(`${kind} solution of ${n} queens`), [kind, n]);
    const found = JSON.parse(execFileSync(program, [command, String(n), "--json"], { encoding: "utf8" }));
    const columns = (await text(page, "#record-columns")).split(": ")[1].split(" ").map(Number);
    if (kind === "first") assert.deepEqual(columns, found.solution);
    const costs = columns.map((column, row) => (2 * row + 1 - n) ** 2 + (2 * column - 1 - n) ** 2).sort((a, b) => b - a);
    if (kind !== "first") assert.deepEqual(costs, found.fingerprint.map(Number));
    assert.equal(await page.locator("#record circle[stroke]").count(), new Set(costs).size);
  }
  for (const n of [1, 2, 3, 99, 100]) {
    await page.fill("#record-size", String(n));
    await page.waitForFunction((n) => document.getElementById("record-title").textContent.endsWith(`of ${n} queen${n === 1 ? "" : "s"}`), n);
  }
  await page.fill("#record-size", "8");
  await page.waitForFunction(() => document.getElementById("record-title").textContent.endsWith("of 8 queens"));
  await page.getByRole("button", { name: "Put it on the board" }).click();
  assert.match(await counted(page), /8 queens placed, a solution!/);

  await page.getByRole("tab", { name: "Symmetry" }).click();
  await page.waitForFunction(() => document.getElementById("classes-text").textContent.includes("92 solutions"));
  assert.equal(await page.locator("#classes button").count(), 12);
  let images = 0;
  for (const button of await page.locator("#classes button").all()) {
    await button.click();
    images += await page.locator("#orbit li").count();
  }
  assert.equal(images, 92);
  assertNoFaults(page);
}

/** A coordinator serves the page at /play, with a policy that lets it work. */
async function served(browser) {
  const scratch = mkdtempSync(join(tmpdir(), "nqueens-play-"));
  const data = join(scratch, "data");
  const coordinator = spawn(program, ["coordinator", "--data", data, "--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0",
    "--play", folder, "--log-level", "error"], { stdio: ["ignore", "ignore", "inherit"] });
  const gone = new Promise((resolve) => coordinator.on("exit", resolve));
  try {
    const address = join(data, "address.json");
    for (const began = Date.now(); !existsSync(address);) {
      assert(coordinator.exitCode === null && Date.now() - began < 60_000, "the coordinator has not started");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const page = await open(browser, "#n=8&queens=1.1", { base: `${JSON.parse(readFileSync(address, "utf8")).dashboard}play` });
    assert.match(await counted(page), /4 completions left/);
    assert.equal(new URL(page.url()).pathname, "/play/");
    assertNoFaults(page);
    // The dashboard has a link to it.
    await page.goto(JSON.parse(readFileSync(address, "utf8")).dashboard);
    await page.getByRole("link", { name: "Board to play with" }).click();
    // The page puts its board into the fragment, at once or later.
    await page.waitForURL((url) => url.pathname === "/play/");
    assert.match(await counted(page), /completions left|solutions/);
    assertNoFaults(page);
  } finally {
    coordinator.kill("SIGKILL");
    await gone;
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** axe-core finds nothing serious in any view, in either theme, on a desktop and on a telephone; nothing is wider than the screen. */
async function accessible(browser) {
  for (const viewport of [{ width: 1280, height: 860 }, { width: 390, height: 844 }]) {
    const page = await open(browser, "#n=8&queens=1.1-2.2-3.5&blocked=8.8", { viewport });
    await counted(page);
    for (const view of ["Board", "the completions", "the relaxation", "Methods", "the relaxation's method", "Gallery", "Symmetry"]) {
      if (view === "the completions") await page.selectOption("#overlay", "count");
      else if (view === "the relaxation") {
        await page.evaluate(() => { location.hash = "#n=8&queens=1.1&blocked=8.8"; });
        await page.selectOption("#overlay", "relaxation");
        await page.waitForFunction(() => document.getElementById("overlay-note").textContent.includes(" of 8"));
      } else if (view === "the relaxation's method") {
        await page.selectOption("#method", "relaxation");
        await page.waitForFunction(() => document.getElementById("run-text").textContent.includes("linear program"));
        await page.getByRole("button", { name: "Step", exact: true }).click();
      } else await page.getByRole("tab", { name: view }).click();
      if (view === "Gallery") await page.waitForSelector("#record svg");
      if (view === "Symmetry") await page.waitForSelector("#orbit li");
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
        const problems = violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("\n")}`);
        assert.deepEqual(problems, [], `${view}, ${colorScheme}, ${viewport.width} wide`);
      }
      const { wide, narrow } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, narrow: innerWidth }));
      assert(wide <= narrow, `${view} is ${wide} wide on a screen of ${narrow}`);
    }
    assertNoFaults(page);
  }
}

/** Returns the path of a picture: docs/play.md has some; the others are for looking at. */
const pathOf = (what, name) => (name === "-phone" && what === "board" ? join(images, "play-phone.png")
  : join(name === "" && what !== "columns" ? images : folder, `play-${what}${name}.png`));

/** Pictures of every view. */
async function screenshots(browser) {
  const views = async (name, options) => {
    const page = await open(browser, "#n=8&queens=1.1-3.8&blocked=7.7-8.2", options);
    const shoot = (what) => page.screenshot({ path: pathOf(what, name) });
    await counted(page);
    await shoot("board");
    await page.getByRole("tab", { name: "Methods" }).click();
    await page.selectOption("#method", "relaxation");
    await page.fill("#watch-size", "8");
    await page.keyboard.press("Tab");
    await page.waitForFunction(() => document.querySelectorAll("#watch-board .square").length === 64 && document.getElementById("run-text").textContent.includes("linear program"));
    await page.locator("#position").fill("1");
    await shoot("relaxation");
    await page.selectOption("#method", "propagation");
    await page.waitForFunction(() => document.getElementById("run-text").textContent.includes("decision"));
    await page.locator("#position").fill("5");
    await shoot("propagation");
    await page.selectOption("#method", "columns");
    await page.waitForFunction(() => document.getElementById("lists").textContent.includes("column"));
    await page.locator("#position").fill("120");
    await shoot("columns");
    await page.getByRole("tab", { name: "Gallery" }).click();
    await page.fill("#record-size", "40");
    await page.waitForFunction(() => document.getElementById("record-title").textContent.includes("of 40"));
    await shoot("gallery");
    await page.getByRole("tab", { name: "Symmetry" }).click();
    await page.waitForSelector("#orbit li");
    await shoot("symmetry");
  };
  await views("", {});
  await views("-dark", { colorScheme: "dark" });
  await views("-phone", { viewport: { width: 390, height: 844 } });
}

await new Promise((resolve) => server.listen(0, "localhost", resolve));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
try {
  for (const test of flags.includes("--screenshots") ? [screenshots] : [counts, keyboard, touch, large, methods, gallery, accessible, served]) {
    await test(browser);
    console.log(`${test.name}: ok`);
  }
} finally {
  await browser.close();
  server.close();
}
