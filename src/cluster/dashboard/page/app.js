// The page: shows the coordinator's state as text and drawings. Its data is never parsed as HTML.
import { element, keyed, setClass, setText, terms } from "/elements.js";
import { clock, duration, grouped, moments, percent, plural, roughly, rounded } from "/format.js";
import { UnitMap, boardPicture, historyPicture } from "/pictures.js";

const $ = (id) => document.getElementById(id);

/** The known items, by kind and name; the log, newest first; the user. */
const empty = () => Object.create(null);
const known = { contribution: empty(), coordinator: empty(), job: empty(), proof: empty(), worker: empty() };
let log = [];
let me = { may_control: false };
/** The coordinator's clock minus this browser's, in ms. */
let clockOffset = 0;
let selected = null;

const now = () => Date.now() + clockOffset;

// ---- requests

/** Sends a request. Resolves to the JSON of the response. */
async function request(path, options) {
  const response = await fetch(path, options);
  if (response.status === 401) {
    location.replace("/sign-in");
    throw new Error("sign in first");
  }
  if (!response.ok) {
    const refusal = await response.json().catch(() => ({}));
    throw new Error(refusal.error ?? `the coordinator answered with status ${response.status}`);
  }
  return response.status === 204 ? null : response.json();
}
let toastTimer = 0;
function showError(error) {
  setText($("toast"), error.message ?? String(error));
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => setText($("toast"), ""), 8000);
}
function post(path) {
  return request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" }).catch(showError);
}
/** Asks the user for confirmation. Resolves to whether it was given. */
function confirmed(title, text, yes) {
  const dialog = $("confirm");
  setText($("confirm-title"), title);
  setText($("confirm-text"), text);
  setText($("confirm-yes"), yes);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

// ---- jobs

const allJobs = () => [...Object.entries(known.job), ...Object.entries(known.proof)]
  .sort(([, a], [, b]) => order(a) - order(b) || b.submitted_ms - a.submitted_ms).map(([name]) => name);
const order = (job) => ({ running: 0, disputed: 0, paused: 1 })[job.state] ?? 2;
/** Returns whether units are leased: a job with a disputed total is being recounted. */
const isActive = (job) => job.state === "running" || job.state === "disputed";
const jobNamed = (name) => known.job[name] ?? known.proof[name];
/** Returns whether every unit of a job is counted and only checks are left. */
const isVerifying = (job) => job.state === "running" && job.units > 0 && job.units_done === job.units;
const badge = (state) => `badge ${{ running: "running", finished: "finished", paused: "warn", cancelled: "bad", disputed: "bad" }[state] ?? ""}`;

/** Returns the estimated time left, "about 22 min", and its range in words. */
function timeLeft(job) {
  if (job.left_s === undefined) return ["–", job.state === "running" ? "estimating…" : undefined];
  const [about, least, most] = [job.left_s, job.left_least_s, job.left_most_s].map((s) => (s === undefined ? s : roughly(s)));
  if (job.units_per_s === 0) return [`at least ${least}`, "no unit was counted in the last minutes"];
  if (least === undefined) return [`about ${about}`, "too early for a range"];
  if (most === undefined) return [`about ${about}`, `at least ${least}; the rate varies`];
  return [`about ${about}`, least === most ? "at a steady rate" : `${least} to ${most} at this rate`];
}

/** Returns when a job will be complete: the date, and its range in words. */
function completion(job) {
  if (job.state === "disputed") return ["", "The total is disputed; units are being counted again."];
  if (job.state === "finished") return ["", ""];
  if (job.state !== "running") return ["", `${job.state === "paused" ? "Paused" : "Cancelled"}; no date of completion.`];
  if (isVerifying(job)) return ["", `Every unit is counted; ${job.state_sentence}.`];
  if (job.left_s === undefined) return ["", "No unit is being counted, so there is no date of completion yet."];
  const [about, least, most] = moments(now(), [job.left_s, job.left_least_s, job.left_most_s].map((s) => (s === undefined ? s : s * 1000)));
  if (job.units_per_s === 0) {
    return ["", `Complete not before ${least}: no unit ${job.units_done ? "was counted in the last minutes" : "has been counted yet"}.`];
  }
  const range = least === undefined ? "" : most === undefined ? `not before ${least}; the rate varies too much for a latest date`
    : least === most ? "at a steady rate" : `between ${least} and ${most}`;
  return [`Complete about ${about}`, range];
}

/** Returns the progress of a proof in a few words. */
function progressOfProof(job) {
  if (job.proven) return ["proved", ""];
  if (job.what === "beautiful") {
    return job.level ? [`cost ${grouped(job.level.cost)}`, `${plural(job.level.squares_left, "square")} left`] : ["not started", ""];
  }
  return [job.row ? `row ${job.row} of ${job.n}` : "not started", `${plural(job.prefixes_refuted, "prefix", "prefixes")} refuted`];
}
/** Returns a solution's square costs, the largest first: "1 202 (4 times), 1 154 (8 times)". */
function costs(fingerprint) {
  const times = new Map();
  for (const cost of fingerprint) times.set(cost, (times.get(cost) ?? 0) + 1);
  return [...times].map(([cost, many]) => grouped(cost) + (many > 1 ? ` (${many} times)` : "")).join(", ");
}

function makeJob(name) {
  const bar = element("div", "progress thin", element("span", "verified"), element("span", "done"));
  bar.setAttribute("aria-hidden", "true");
  const button = element("button", "job",
    element("span", "top", element("b"), element("span", "badge")), bar, element("span", "under", element("span"), element("span")));
  button.type = "button";
  button.addEventListener("click", () => { location.hash = name; });
  return element("li", "", button);
}
function updateJob(item, name) {
  const job = jobNamed(name);
  const [top, bar, under] = item.firstChild.children;
  setText(top.firstChild, job.title);
  setText(top.lastChild, job.state_sentence);
  setClass(top.lastChild, badge(job.state));
  const current = String(name === selected);
  if (item.firstChild.getAttribute("aria-current") !== current) item.firstChild.setAttribute("aria-current", current);
  const isProof = name in known.proof;
  bar.hidden = isProof;
  if (isProof) {
    const [how, more] = progressOfProof(job);
    setText(under.firstChild, how);
    setText(under.lastChild, more);
    return;
  }
  bar.firstChild.style.width = `${(100 * job.units_verified) / Math.max(1, job.units)}%`;
  bar.lastChild.style.width = `${(100 * (job.units_done - job.units_verified)) / Math.max(1, job.units)}%`;
  const isDone = job.solutions !== undefined;
  setText(under.firstChild, isDone ? grouped(job.solutions) : percent(job.units_done, job.units));
  setText(under.lastChild, job.state === "disputed" ? `disputed, ${plural(job.recounts_due, "recount")} due` : isDone ? (String(job.solutions) === "1" ? "solution" : "solutions") : job.left_s !== undefined ? `${timeLeft(job)[0]} left` : plural(job.units, "unit"));
}

const map = new UnitMap($("map"), $("cell"));
/** The last requests for the selected job, repeated only if the response may have changed. */
let shown = {};
/** The known points of the history. */
let points = [];

function select(name) {
  if (name === selected) return;
  selected = name;
  shown = {};
  points = [];
  map.show(null);
  $("history").replaceChildren();
  $("board").replaceChildren();
  $("report").replaceChildren();
  $("by").hidden = true;
}

const bytes = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

async function refreshMap(name, job) {
  const key = [job.units_done, job.units_verified, job.units_open, job.units_poisoned].join();
  if (shown.mapKey === key || shown.mapBusy) return;
  const current = shown;
  current.mapBusy = true;
  try {
    const response = await request(`/api/jobs/${name}/map/${current.version ?? 0}`);
    if (current !== shown) return;
    current.mapKey = key;
    if (response.version === current.version) return;
    current.version = response.version;
    const [done, verified, leased, poisoned] = ["done", "verified", "leased", "poisoned"].map((part) => bytes(response[part]));
    map.show({ units: response.units, perCell: response.units_per_cell, done, verified, leased, poisoned });
    $("map").setAttribute("aria-label", `Map of ${plural(job.units, "unit")}: ${grouped(job.units_verified)} verified, `
      + `${grouped(job.units_done)} counted, ${grouped(job.units_open)} open, ${grouped(job.units_poisoned)} set aside`);
  } catch { /* Retried at the next change. */ } finally { current.mapBusy = false; }
}

async function refreshHistory(name, job) {
  const every = isActive(job) ? 2500 : 30_000;
  if (shown.historyBusy || (shown.historyAt && Date.now() - shown.historyAt < every)) return;
  const current = shown;
  current.historyBusy = true;
  try {
    // The coordinator thins out old points, so all points are requested from time to time.
    const isFull = !points.length || (current.historyTimes = (current.historyTimes ?? 0) + 1) % 60 === 0;
    const after = isFull ? 0 : points[points.length - 1][0];
    const response = await request(`/api/jobs/${name}/history/${after}`);
    if (current !== shown) return;
    points = isFull ? response.points : points.concat(response.points);
    current.historyAt = Date.now();
    if (isFull || response.points.length) drawHistory();
  } catch { /* Retried later. */ } finally { current.historyBusy = false; }
}
function drawHistory() {
  if (!points.length) return;
  const width = Math.max(280, $("history").clientWidth);
  $("history").replaceChildren(historyPicture(points, width, rounded));
}

async function refreshReport(name, job) {
  const key = [job.state, isActive(job) ? Math.floor(Date.now() / 10_000) : 0].join();
  if (shown.reportKey === key || shown.reportBusy) return;
  const current = shown;
  current.reportBusy = true;
  try {
    const report = await request(`/api/jobs/${name}`);
    if (current !== shown) return;
    current.reportKey = key;
    showContributions(report);
  } catch { /* Retried later. */ } finally { current.reportBusy = false; }
}

/** Creates a row of a table. On a narrow screen it is a card, and each cell has the head of its column. */
function tableRow(heads, ...cells) {
  const row = element("tr", "", ...cells);
  row.setAttribute("role", "row");
  cells.forEach((cell, at) => {
    cell.setAttribute("role", "cell");
    if (at > 0 && heads[at]) cell.dataset.head = heads[at];
  });
  return row;
}
const headsOf = (table) => [...table.tHead.rows[0].cells].map((head) => (head.classList.contains("action") ? "" : head.textContent));

/** Shows the contributions of workers, the largest first. */
function showContributions(report) {
  const MOST = 100;
  const isProof = "proven" in report;
  const heads = isProof
    ? ["Worker", "Queries", "Given up", "Nodes", "Time"] : ["Worker", "Owner", "Kernel", "Device", "Units", "Verified by others", "Verified for others"];
  const rows = isProof
    ? report.by.map((by) => [by.worker, grouped(by.queries), grouped(by.given_up), grouped(by.nodes), duration(by.proving_s)])
    : [...report.by].sort((a, b) => b.units - a.units).slice(0, MOST)
      .map((by) => [by.worker, by.owner || "–", by.kernel, by.device, grouped(by.units), percent(by.units_verified, by.units), grouped(by.verified_of_others)]);
  const isNumber = (at) => at >= (isProof ? 1 : 4);
  $("by-head").replaceChildren(...heads.map((head, at) => {
    const cell = element("th", isNumber(at) ? "number" : "", head);
    cell.scope = "col";
    cell.setAttribute("role", "columnheader");
    return cell;
  }));
  $("by").tBodies[0].replaceChildren(...rows.map((row) => tableRow(heads,
    ...row.map((text, at) => element("td", at === 0 ? "name" : isNumber(at) ? "number" : "", text)))));
  $("by").hidden = rows.length === 0;
}

function showDetail() {
  const job = jobNamed(selected);
  $("detail").hidden = !job;
  if (!job) return;
  const isProof = selected in known.proof;
  setText($("title"), job.title);
  setText($("state"), job.state_sentence);
  setClass($("state"), badge(job.state));
  const end = isActive(job) ? now() : job.state_ms;
  setText($("since"), `job ${selected.slice(0, 8)}, submitted by ${job.submitter || "an unknown user"}, ${duration((end - job.submitted_ms) / 1000)}`
    + (isActive(job) ? " so far" : job.state === "finished" ? " in total" : ` until it was ${job.state}`));
  showActions(job);
  for (const id of ["map-card", "history-card", "overall"]) $(id).hidden = isProof;
  $("detail").classList.toggle("proof", isProof);
  $("certificate").hidden = !job.proven;
  if (!isProof) $("board-card").hidden = true;
  const MOST_NOTES = 3;
  const notes = job.notes.slice(0, MOST_NOTES);
  if (job.notes.length > MOST_NOTES) notes.push(`and ${job.notes.length - MOST_NOTES} more; see the log`);
  keyed($("notes"), notes, () => element("li"), setText);
  if (isProof) showProof(job); else showCount(job);
  refreshReport(selected, job);
}

function showCount(job) {
  const isOver = job.state === "finished";
  const [time, range] = timeLeft(job);
  setText($("percent"), percent(job.units_done, job.units));
  const [date, band] = completion(job);
  $("overall").hidden = isOver;
  $("completion").replaceChildren(...(date ? [element("b", "", date), " "] : []), element("span", "", band));
  terms($("figures"), isOver
    ? [["Solutions", job.solutions ? grouped(job.solutions) : "–", job.sentence ?? job.fault, "wide"],
      ["Units", grouped(job.units)], ["Verified", percent(job.units_verified, job.units), "recounted as mirror images by others"]]
    : [isVerifying(job) ? ["Checks left", grouped(job.recounts_due), "recounts by others or by the coordinator"] : ["Time left", time, range],
      ["Counted", grouped(job.units_done), `of ${plural(job.units, "unit")}`],
      ["Rate", `${rounded(job.units_per_s)} units/s`, "over the last minutes"],
      ["Verified", percent(job.units_verified, job.units), `${plural(job.units_verified, "unit")}, ${plural(job.recounts_due, "recount")} due`]]);
  const part = (units) => `${(100 * units) / Math.max(1, job.units)}%`;
  $("bar-verified").style.width = part(job.units_verified);
  $("bar-done").style.width = part(job.units_done - job.units_verified);
  $("bar-leased").style.width = part(job.units - job.units_done - job.units_open - job.units_poisoned);
  $("progress").setAttribute("aria-valuenow", Math.floor((100 * job.units_done) / Math.max(1, job.units)));
  setText($("report-title"), isOver ? "Final report" : "Report so far");
  const entries = [];
  if (job.solutions) entries.push(["Solutions", grouped(job.solutions), job.state === "disputed" ? "disputed: do not use this number" : job.sentence, "whole big"]);
  if (job.assurance_sentence) entries.push(["Assurance", job.assurance_sentence, undefined, "whole"]);
  entries.push(
    ["Verified by the coordinator", plural(job.units_audited, "unit"), "recounted in full; included in the verified units"],
    ["Spot-checked", plural(job.units_spot_checked, "unit"), "a part of each unit was recounted by others"],
    ["Recounts", `${grouped(job.recounts_agreed)} agreed, ${grouped(job.recounts_differed)} differed`],
    ["Results revoked", grouped(job.results_taken_back)],
    ["Counting", duration(job.counting_s), "summed over all threads and devices"],
    ["Recounting", duration(job.recounting_s)]);
  if (job.nodes) entries.push(["Nodes", grouped(job.nodes)]);
  if (job.placed.length) entries.push(["Queens placed", job.placed.map((square) => square.join(",")).join(" ")]);
  if (job.blocked.length) entries.push(["Squares blocked", job.blocked.map((square) => square.join(",")).join(" ")]);
  terms($("report"), entries);
  refreshMap(selected, job);
  refreshHistory(selected, job);
}

function showProof(job) {
  const isBeautiful = job.what === "beautiful";
  terms($("figures"), job.proven ? figuresProved(job) : isBeautiful ? figuresOfBeautiful(job) : figuresOfFirst(job));
  setText($("report-title"), job.proven ? "Final report" : "Report so far");
  $("certificate").href = `/api/jobs/${selected}/certificate`;
  const entries = [["Checking", duration(job.checking_s), "every answer is checked before it is used"]];
  if (job.proven && !isBeautiful) entries.push(["Prefixes refuted", grouped(job.prefixes_refuted)]);
  const fingerprint = job.fingerprint ?? job.best_fingerprint;
  if (fingerprint) entries.push([job.proven ? "Costs" : "Costs of the best solution so far", costs(fingerprint), undefined, "whole"]);
  if (job.proven) entries.push(["SHA-256 of the certificate", job.certificate_sha256, undefined, "whole mono"]);
  terms($("report"), entries);
  showBoard(job);
}
function figuresProved(job) {
  const what = isEmpty(job.solution) ? "no solution exists" : job.what === "beautiful" ? "most beautiful solution" : "first solution";
  return [["Proved", what, undefined, "wide"], ["Certificate", plural(job.certificate_bytes, "byte")]];
}
const openQueries = (job) => ["Open queries", grouped(job.queries_open), `${grouped(job.queries_lent)} being solved`];
function figuresOfFirst(job) {
  return [["Row", job.row ? `${job.row} of ${job.n}` : "–"], openQueries(job), ["Prefixes refuted", grouped(job.prefixes_refuted)]];
}
function figuresOfBeautiful(job) {
  const { level } = job;
  if (!level) return [["Cost", "–", "not started"], openQueries(job)];
  return [
    ["Cost", grouped(level.cost), `${level.queens_at_least} to ${plural(level.queens_of_best, "queen")} at this cost`],
    ["Queens decided", `${level.queens_decided} of ${job.n}`, `${plural(level.squares_left, "square")} left`],
    openQueries(job)];
}

const isEmpty = (columns) => !columns?.length;
/** Shows the solution or, during the search, the best known one. */
function showBoard(job) {
  const columns = isEmpty(job.solution) ? job.best : job.solution;
  $("board-card").hidden = isEmpty(columns);
  if (isEmpty(columns)) return;
  const text = columns.join(" ");
  setText($("board-title"), job.proven ? "Solution" : "Best solution so far");
  if (shown.board === text) return;
  shown.board = text;
  $("board").replaceChildren(boardPicture(columns));
  setText($("columns"), text);
}

function showActions(job) {
  const actions = [];
  if (me.may_control) {
    if (isActive(job)) actions.push("pause");
    if (job.state === "paused" || job.state === "cancelled") actions.push("resume");
    if (isActive(job) && job.units_poisoned) actions.push("retry");
    if (isActive(job) || job.state === "paused") actions.push("cancel");
  }
  keyed($("actions"), actions, (action) => {
    const word = { pause: "Pause", resume: "Resume", retry: "Retry the units set aside", cancel: "Cancel" }[action];
    const button = element("button", action === "cancel" ? "danger" : "", word);
    button.type = "button";
    button.addEventListener("click", async () => {
      const name = selected;
      const { title } = jobNamed(name);
      const text = `No more work for the ${title} will be handed out. Counted units are kept, and a resumed job continues from there.`;
      if (action === "cancel" && !await confirmed("Cancel this job?", text, "Cancel the job")) return;
      button.disabled = true;
      await post(`/api/jobs/${name}/${action === "retry" ? "resume" : action}`);
      button.disabled = false;
    });
    return button;
  }, () => {});
}

// ---- workers

const MOST_ROWS = 500;
const MOST_DEVICES = 4;

function workerState(worker) {
  const silence = now() - worker.seen_ms;
  if (worker.quarantined) return ["quarantine", "badge bad", worker.quarantined];
  if (silence > (known.coordinator[""]?.lease_ms ?? 90_000)) return [worker.draining ? "gone" : "silent", worker.draining ? "badge" : "badge warn", ""];
  const faulty = worker.devices.filter((device) => device.fault);
  if (faulty.length) return ["fault", "badge bad", faulty.map((device) => `${device.id}: ${device.fault}`).join("; ")];
  if (worker.draining) return ["draining", "badge warn", ""];
  if (worker.capacity === 0) return ["resting", "badge", ""];
  return ["active", "badge running", worker.units_held ? `${plural(worker.units_held, "unit")} leased` : "idle"];
}

/** Creates a button for an action on a worker that needs confirmation. */
function workerButton(name, word, text) {
  const button = element("button", "small", word);
  button.type = "button";
  button.setAttribute("aria-label", `${word} ${name}`);
  button.addEventListener("click", async () => {
    const path = `/api/workers/${encodeURIComponent(name)}/${word.toLowerCase()}`;
    if (await confirmed(`${word} this worker?`, text, `${word} it`)) await post(path);
  });
  return button;
}
function makeWorker(name) {
  const cell = (className) => element("td", className, "", element("small"));
  const cells = [cell("name"), element("td", "", element("span", "badge"), element("small")), cell("devices"),
    cell("number"), cell("number"), cell("number"), cell("number"), cell("number")];
  if (me.may_control) {
    cells.push(element("td", "number action",
      workerButton(name, "Drain", `${name} will finish its leased units and get no more until it restarts.`),
      workerButton(name, "Release", `${name} will be trusted again, and its reputation starts from zero. It has to be restarted.`)));
  }
  return tableRow(headsOf($("workers")), ...cells);
}
/** Sets a cell's text and small text. */
function setCell(cell, text, small = "") {
  if (cell.firstChild.data !== text) cell.firstChild.data = text;
  setText(cell.lastChild, small);
}
function updateWorker(row, name) {
  const worker = known.worker[name];
  const [who, state, devices, rate, units, verified, temperature, contact, action] = row.children;
  const owner = worker.owner && worker.owner !== name ? `${worker.owner}, ` : "";
  setCell(who, name, owner + worker.address.replace(/:\d+$/, ""));
  const [word, className, why] = workerState(worker);
  setText(state.firstChild, word);
  setClass(state.firstChild, className);
  setText(state.lastChild, why);
  if (row.devices !== worker.devices) {
    row.devices = worker.devices;
    const shownDevices = worker.devices.slice(0, MOST_DEVICES);
    const more = worker.devices.length - shownDevices.length;
    setCell(devices, shownDevices.map((device) => device.name || device.id).join(", ") + (more > 0 ? ` and ${more} more` : ""),
      [...new Set(shownDevices.map((device) => device.kernel))].join(", "));
    const hottest = Math.max(...worker.devices.map((device) => device.temperature_c ?? -Infinity));
    setCell(temperature, Number.isFinite(hottest) ? `${Math.round(hottest)} °C` : "–");
  }
  setCell(rate, worker.units_per_s ? rounded(worker.units_per_s) : "–");
  setCell(units, grouped(worker.units_done), worker.units > worker.units_done ? `${plural(worker.units, "result")} in use` : "");
  setCell(verified, worker.units ? percent(worker.units_verified, worker.units) : "–");
  updateContact(contact, worker);
  if (!action) return;
  const [drain, release] = action.children;
  drain.hidden = worker.draining || ["quarantine", "gone", "silent"].includes(word);
  release.hidden = !worker.quarantined;
}
function updateContact(cell, worker) {
  const seconds = Math.max(0, Math.round((now() - worker.seen_ms) / 1000));
  setCell(cell, seconds < 2 ? "now" : `${duration(seconds)} ago`);
}

function showWorkers() {
  const wanted = $("filter").value.trim().toLowerCase();
  const names = Object.keys(known.worker);
  const matches = (name) => !wanted || name.includes(wanted) || known.worker[name].devices.some((device) => device.name.toLowerCase().includes(wanted));
  const found = names.filter(matches).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  setText($("workers-count"), names.length ? (found.length > MOST_ROWS ? `${grouped(MOST_ROWS)} of ${grouped(names.length)}`
    : found.length < names.length ? `${grouped(found.length)} of ${grouped(names.length)}` : grouped(names.length)) : "");
  $("workers").hidden = names.length === 0;
  $("no-workers").hidden = names.length > 0;
  keyed($("workers").tBodies[0], found.slice(0, MOST_ROWS), makeWorker, updateWorker);
}

// ---- this week

function showWeek() {
  const owners = Object.entries(known.contribution).sort(([, a], [, b]) => b.counting_s - a.counting_s);
  const total = owners.reduce((sum, [, { counting_s }]) => sum + counting_s, 0);
  $("week").hidden = owners.length === 0;
  $("no-week").hidden = owners.length > 0;
  const heads = headsOf($("week"));
  keyed($("week").tBodies[0], owners.map(([owner]) => owner),
    () => tableRow(heads, element("td", "name"), ...heads.slice(1).map(() => element("td", "number"))),
    (row, owner) => {
      const { workers, units, counting_s } = known.contribution[owner];
      const texts = [owner, percent(counting_s, total), duration(counting_s), grouped(units), grouped(workers)];
      texts.forEach((text, at) => setText(row.children[at], text));
    });
}

// ---- the log, the summary

const MOST_LINES = 300;

function showLog() {
  const lines = new Map(log.map((line) => [String(line.number), line]));
  keyed($("log"), [...lines.keys()], (number) => {
    const line = lines.get(number);
    const time = element("time", "", clock(line.at_ms));
    time.dateTime = new Date(line.at_ms).toISOString();
    const head = element("p", "", time);
    if (jobNamed(line.job)) {
      const job = element("a", "", `job ${line.job.slice(0, 8)}`);
      job.href = `#${line.job}`;
      head.append(" ", job);
    }
    const mark = { warning: "Warning: ", error: "Error: " }[line.level];
    const text = element("span", "");
    if (mark) text.append(element("b", "unseen", mark));
    text.append(line.text);
    return element("li", line.level, head, text);
  }, () => {});
}

function showSummary() {
  const head = known.coordinator[""] ?? {};
  const running = Object.values(known.job).filter((job) => job.state === "running");
  const rate = running.reduce((sum, job) => sum + job.units_per_s, 0);
  const proofs = Object.values(known.proof).filter((job) => job.state === "running").length;
  setText($("build"), head.build ?? "");
  $("trouble").hidden = !head.trouble;
  setText($("trouble"), head.trouble ?? "");
  const quarantined = Object.values(known.worker).filter((worker) => worker.quarantined).length;
  const entries = [
    [running.length + proofs === 1 ? "job running" : "jobs running", grouped(running.length + proofs)],
    [head.workers === 1 ? "worker online" : "workers online", grouped(head.workers ?? 0)],
    ["units per second", rate ? rounded(rate) : "0"],
  ];
  const disputed = Object.values(known.job).filter((job) => job.state === "disputed").length;
  if (disputed) entries.push(["disputed", grouped(disputed)]);
  if (quarantined) entries.push(["in quarantine", grouped(quarantined)]);
  terms($("summary"), entries);
  document.title = running.length === 1 && running[0].units_done < running[0].units
    ? `${percent(running[0].units_done, running[0].units)} · nqueens` : "nqueens";
}

// ---- drawing

let due = false;
let drawnAt = 0;
function draw() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    drawnAt = Date.now();
    const names = allJobs();
    const wanted = location.hash.slice(1);
    select(jobNamed(wanted) ? wanted : names[0] ?? null);
    showSummary();
    keyed($("jobs"), names, makeJob, updateJob);
    $("no-jobs").hidden = names.length > 0;
    showDetail();
    showWeek();
    showWorkers();
    showLog();
    // The number of draws, for measurements.
    document.documentElement.dataset.drawn = Number(document.documentElement.dataset.drawn ?? 0) + 1;
  });
}
addEventListener("hashchange", draw);
$("filter").addEventListener("input", draw);
new ResizeObserver(drawHistory).observe($("history"));
setInterval(() => {
  // Only refreshes the relative times of the last draw.
  if (document.hidden || Date.now() - drawnAt < 1500) return;
  for (const [name, row] of $("workers").tBodies[0].byName ?? []) {
    const worker = known.worker[name];
    if (worker) updateContact(row.children[7], worker);
  }
}, 1000);

// ---- connection

function showConnection(state, text) {
  setClass($("connection"), `connection ${state}`);
  setText($("connection"), text);
}
/** Applies an update from the coordinator. */
function apply(message) {
  clockOffset = message.now_ms ? message.now_ms - Date.now() : clockOffset;
  for (const [kind, items] of Object.entries(message.set)) Object.assign(known[kind], items);
  for (const [kind, names] of Object.entries(message.gone)) names.forEach((name) => delete known[kind][name]);
  if (message.log.length) log = [...message.log].reverse().concat(log).slice(0, MOST_LINES);
}

let source = null;
let lastEventAt = 0;
let retryTimer = 0;
let isStarting = false;
function retryLater() {
  clearTimeout(retryTimer);
  retryTimer = setTimeout(start, 2000);
}
function showLost() {
  showConnection("lost", "The coordinator does not answer; reconnecting…");
}
function connect() {
  lastEventAt = Date.now();
  const events = new EventSource("/api/live");
  source = events;
  const on = (name, handle) => events.addEventListener(name, (event) => {
    lastEventAt = Date.now();
    showConnection("live", "Live");
    handle(JSON.parse(event.data));
  });
  on("all", (message) => {
    Object.values(known).forEach((items) => Object.keys(items).forEach((name) => delete items[name]));
    log = [];
    shown = {};
    apply(message);
    // The very first state may still be empty.
    if (message.now_ms) draw();
  });
  on("change", (message) => {
    apply(message);
    draw();
  });
  on("beat", () => {});
  on("over", () => location.replace("/sign-in"));
  events.addEventListener("error", () => {
    showLost();
    // A refused connection does not reconnect by itself.
    if (events.readyState === EventSource.CLOSED) retryLater();
  });
}
/** Requests the user and reconnects. Retries until it succeeds, one attempt at a time. */
async function start() {
  if (isStarting) return;
  isStarting = true;
  clearTimeout(retryTimer);
  lastEventAt = Date.now();
  // The old source would reconnect by itself.
  source?.close();
  try {
    me = await request("/api/me", { signal: AbortSignal.timeout(10_000) });
    setText($("me"), me.until_ms ? `${me.name} · ${me.role}` : "all users of this machine");
    $("sign-out").hidden = !me.until_ms;
    $("play").hidden = !me.has_play;
    if (me.may_control && !$("workers-head").querySelector(".action")) {
      const head = element("th", "action", element("span", "unseen", "Action"));
      head.setAttribute("role", "columnheader");
      $("workers-head").append(head);
    }
    connect();
  } catch {
    showLost();
    retryLater();
  } finally {
    isStarting = false;
  }
}
// Reconnects if no event arrives for 15 s.
setInterval(() => { if (Date.now() - lastEventAt > 15_000) start(); }, 5000);
$("sign-out").addEventListener("click", async () => {
  await post("/sign-out");
  location.replace("/sign-in");
});
showConnection("", "Connecting…");
start();
