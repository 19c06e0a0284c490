// The page: shows the coordinator's state as text and drawings. Its data is never parsed as HTML.
import { UnitMap, boardPicture, historyPicture } from "/pictures.js";

const $ = (id) => document.getElementById(id);

/** The known items, by kind and name; the log, newest first; the user. */
const nothing = () => Object.create(null);
const known = { coordinator: nothing(), job: nothing(), proof: nothing(), worker: nothing() };
let log = [];
let me = { may_control: false };
/** The coordinator's clock minus this one's, in ms. */
let ahead = 0;
let selected = null;

// ---- words and numbers

const grouped = (digits) => String(digits).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const plural = (count, word) => `${grouped(count)} ${word}${count === 1 ? "" : "s"}`;
const percent = (part, whole) => {
  if (!whole) return "–";
  const share = (100 * part) / whole;
  // An incomplete job never shows 100 %.
  if (part < whole && share > 99.9) return "99.9 %";
  if (part > 0 && share < 0.1) return "< 0.1 %";
  return `${share === 100 ? 100 : share.toFixed(1)} %`;
};
const rounded = (value) => {
  if (!value) return "0";
  if (value >= 100_000) return value.toExponential(2).replace("e+", "e");
  if (value >= 100) return grouped(Math.round(value));
  return String(Number(value.toPrecision(value >= 1 ? 3 : 2)));
};
const duration = (seconds) => {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  const units = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const at = units.findIndex(([, size]) => seconds >= size);
  const [word, size] = units[at];
  const first = Math.floor(seconds / size);
  const [small, smaller] = units[at + 1];
  const second = Math.floor((seconds - first * size) / smaller);
  return `${grouped(first)} ${word} ${String(second).padStart(2, "0")} ${small}`;
};
/** Formats a duration that is only an estimate. */
const roughly = (seconds) => {
  const units = [["d", 86_400], ["h", 3600], ["min", 60]];
  const unit = units.find(([, size]) => seconds >= 3 * size);
  return unit ? `${grouped(Math.round(seconds / unit[1]))} ${unit[0]}` : duration(seconds);
};
const now = () => Date.now() + ahead;
const clock = (ms) => new Date(ms).toLocaleString("en-GB", {
  month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
});

// ---- elements

/** Creates an element with a class and text or children. */
function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}
/** Sets an element's text if it has changed. */
function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
function be(target, className) {
  if (target.className !== className) target.className = className;
}
/** Fills a list of terms: `[term, text, small text, class]`. */
function terms(list, entries) {
  while (list.children.length > entries.length) list.lastChild.remove();
  entries.forEach(([term, text, small, className], at) => {
    const row = list.children[at] ?? list.appendChild(element("div", "", element("dt"), element("dd", "", "", element("small"))));
    const [dt, dd] = row.children;
    say(dt, term);
    if (dd.firstChild.data !== text) dd.firstChild.data = text;
    say(dd.lastChild, small ?? "");
    dd.lastChild.hidden = !small;
    be(dd, className ?? "");
    row.className = (className ?? "").includes("whole") ? "whole" : "";
  });
}
/** Keeps one child element per name, in this order. */
function keyed(parent, names, make, update) {
  parent.byName ??= new Map();
  const wanted = new Set(names);
  for (const [name, child] of parent.byName) {
    if (!wanted.has(name)) {
      child.remove();
      parent.byName.delete(name);
    }
  }
  names.forEach((name, at) => {
    let child = parent.byName.get(name);
    if (!child) {
      child = make(name);
      parent.byName.set(name, child);
    }
    if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] ?? null);
    update(child, name);
  });
}

// ---- requests

async function ask(path, options) {
  const answer = await fetch(path, options);
  if (answer.status === 401) {
    location.replace("/sign-in");
    throw new Error("sign in first");
  }
  if (!answer.ok) {
    const refused = await answer.json().catch(() => ({}));
    throw new Error(refused.error ?? `the coordinator says ${answer.status}`);
  }
  return answer.status === 204 ? null : answer.json();
}
let forget = 0;
function complain(error) {
  say($("toast"), error.message ?? String(error));
  clearTimeout(forget);
  forget = setTimeout(() => say($("toast"), ""), 8000);
}
function post(path) {
  return ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" }).catch(complain);
}
/** Asks the user for confirmation. Resolves to whether it was given. */
function confirmed(title, text, yes) {
  const dialog = $("confirm");
  say($("confirm-title"), title);
  say($("confirm-text"), text);
  say($("confirm-yes"), yes);
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
const goesOn = (job) => job.state === "running" || job.state === "disputed";
const jobNamed = (name) => known.job[name] ?? known.proof[name];
const badge = (state) => `badge ${{ running: "running", finished: "finished", paused: "warn", cancelled: "bad", disputed: "bad" }[state] ?? ""}`;

/** Returns the estimated time left, "about 22 min", and its range in words. */
function left(job) {
  if (job.left_s === undefined) return ["–", job.state === "running" ? "nobody can say yet" : undefined];
  const [about, least, most] = [job.left_s, job.left_least_s, job.left_most_s].map((s) => (s === undefined ? s : roughly(s)));
  if (least === undefined) return [`about ${about}`, "too early for a band"];
  if (most === undefined) return [`about ${about}`, `at least ${least}; the pace is uneven`];
  return [`about ${about}`, least === most ? "at an even pace" : `${least} to ${most} at this pace`];
}

/** Returns the progress of a proof in a few words. */
function progressOfProof(job) {
  if (job.proven) return ["proved", ""];
  if (job.what === "beautiful") {
    return job.level ? [`cost ${grouped(job.level.cost)}`, `${plural(job.level.squares_left, "square")} left`] : ["not begun", ""];
  }
  return [job.row ? `row ${job.row} of ${job.n}` : "not begun", `${grouped(job.prefixes_refuted)} refuted`];
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
  say(top.firstChild, job.title);
  say(top.lastChild, job.state);
  be(top.lastChild, badge(job.state));
  const current = String(name === selected);
  if (item.firstChild.getAttribute("aria-current") !== current) item.firstChild.setAttribute("aria-current", current);
  const isProof = name in known.proof;
  bar.hidden = isProof;
  if (isProof) {
    const [how, more] = progressOfProof(job);
    say(under.firstChild, how);
    say(under.lastChild, more);
    return;
  }
  bar.firstChild.style.width = `${(100 * job.units_verified) / Math.max(1, job.units)}%`;
  bar.lastChild.style.width = `${(100 * (job.units_done - job.units_verified)) / Math.max(1, job.units)}%`;
  const isDone = job.solutions !== undefined;
  say(under.firstChild, isDone ? grouped(job.solutions) : percent(job.units_done, job.units));
  say(under.lastChild, job.state === "disputed" ? `disputed, ${plural(job.recounts_due, "recount")} due` : isDone ? "solutions" : job.left_s !== undefined ? `${left(job)[0]} left` : plural(job.units, "unit"));
}

const map = new UnitMap($("map"), $("cell"));
/** The last requests for the selected job, repeated only if the answer may have changed. */
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
  const mine = shown;
  mine.mapBusy = true;
  try {
    const answer = await ask(`/api/jobs/${name}/map/${mine.version ?? 0}`);
    if (mine !== shown) return;
    mine.mapKey = key;
    if (answer.version === mine.version) return;
    mine.version = answer.version;
    const [done, verified, leased, poisoned] = ["done", "verified", "leased", "poisoned"].map((part) => bytes(answer[part]));
    map.show({ units: answer.units, perCell: answer.units_per_cell, done, verified, leased, poisoned });
    $("map").setAttribute("aria-label", `Map of ${plural(job.units, "unit")}: ${grouped(job.units_verified)} verified, `
      + `${grouped(job.units_done)} counted, ${grouped(job.units_open)} open, ${grouped(job.units_poisoned)} set aside`);
  } catch { /* Retried at the next change. */ } finally { mine.mapBusy = false; }
}

async function refreshHistory(name, job) {
  const every = goesOn(job) ? 2500 : 30_000;
  if (shown.historyBusy || (shown.historyAt && Date.now() - shown.historyAt < every)) return;
  const mine = shown;
  mine.historyBusy = true;
  try {
    // The coordinator thins out old points, so all of them are requested from time to time.
    const anew = !points.length || (mine.historyTimes = (mine.historyTimes ?? 0) + 1) % 60 === 0;
    const after = anew ? 0 : points[points.length - 1][0];
    const answer = await ask(`/api/jobs/${name}/history/${after}`);
    if (mine !== shown) return;
    points = anew ? answer.points : points.concat(answer.points);
    mine.historyAt = Date.now();
    if (anew || answer.points.length) drawHistory();
  } catch { /* Retried later. */ } finally { mine.historyBusy = false; }
}
function drawHistory() {
  if (!points.length) return;
  const width = Math.max(280, $("history").clientWidth);
  $("history").replaceChildren(historyPicture(points, width, rounded));
}

async function refreshReport(name, job) {
  const key = [job.state, goesOn(job) ? Math.floor(Date.now() / 10_000) : 0].join();
  if (shown.reportKey === key || shown.reportBusy) return;
  const mine = shown;
  mine.reportBusy = true;
  try {
    const report = await ask(`/api/jobs/${name}`);
    if (mine !== shown) return;
    mine.reportKey = key;
    showBy(report);
  } catch { /* Retried later. */ } finally { mine.reportBusy = false; }
}

/** Shows the contributions of workers, the largest first. */
function showBy(report) {
  const MOST = 100;
  const isProof = "proven" in report;
  const heads = isProof
    ? ["Worker", "Queries", "Given up", "Nodes", "Time"] : ["Worker", "Owner", "Kernel", "Device", "Units", "Verified by others", "Verified of others"];
  const rows = isProof
    ? report.by.map((by) => [by.worker, grouped(by.queries), grouped(by.given_up), grouped(by.nodes), duration(by.proving_s)])
    : [...report.by].sort((a, b) => b.units - a.units).slice(0, MOST)
      .map((by) => [by.worker, by.owner || "–", by.kernel, by.device, grouped(by.units), percent(by.units_verified, by.units), grouped(by.verified_of_others)]);
  const isNumber = (at) => at >= (isProof ? 1 : 4);
  $("by-head").replaceChildren(...heads.map((head, at) => {
    const cell = element("th", isNumber(at) ? "number" : "", head);
    cell.scope = "col";
    return cell;
  }));
  $("by").tBodies[0].replaceChildren(...rows.map((row) =>
    element("tr", "", ...row.map((text, at) => element("td", at === 0 ? "name" : isNumber(at) ? "number" : "", text)))));
  $("by").hidden = rows.length === 0;
}

function showDetail() {
  const job = jobNamed(selected);
  $("detail").hidden = !job;
  if (!job) return;
  const isProof = selected in known.proof;
  say($("title"), job.title);
  say($("state"), job.state);
  be($("state"), badge(job.state));
  const end = goesOn(job) ? now() : job.state_ms;
  say($("since"), `job ${selected.slice(0, 8)}, submitted by ${job.submitter || "nobody known"}, ${duration((end - job.submitted_ms) / 1000)}`
    + (goesOn(job) ? " so far" : job.state === "finished" ? " in all" : ` until it was ${job.state}`));
  showActions(job);
  for (const id of ["map-card", "history-card", "progress"]) $(id).hidden = isProof;
  $("detail").classList.toggle("proof", isProof);
  $("certificate").hidden = !job.proven;
  if (!isProof) $("board-card").hidden = true;
  const MOST_NOTES = 3;
  const notes = job.notes.slice(0, MOST_NOTES);
  if (job.notes.length > MOST_NOTES) notes.push(`and more like that; the log has them`);
  keyed($("notes"), notes, () => element("li"), say);
  if (isProof) showProof(job); else showCount(job);
  refreshReport(selected, job);
}

function showCount(job) {
  const isOver = job.state === "finished";
  const [time, band] = left(job);
  terms($("figures"), isOver
    ? [["Solutions", job.solutions ? grouped(job.solutions) : "–", job.sentence ?? job.fault, "wide"],
      ["Units", grouped(job.units)], ["Verified", percent(job.units_verified, job.units), "counted again as mirror images by others"]]
    : [["Counted", percent(job.units_done, job.units), `${grouped(job.units_done)} of ${plural(job.units, "unit")}`],
      ["Rate", job.units_per_s ? `${rounded(job.units_per_s)} units/s` : "–", "in the last minutes"],
      ["Time left", time, band],
      ["Verified", percent(job.units_verified, job.units), `${grouped(job.units_verified)} units, ${plural(job.recounts_due, "recount")} due`]]);
  const part = (units) => `${(100 * units) / Math.max(1, job.units)}%`;
  $("bar-verified").style.width = part(job.units_verified);
  $("bar-done").style.width = part(job.units_done - job.units_verified);
  $("bar-leased").style.width = part(job.units - job.units_done - job.units_open - job.units_poisoned);
  $("progress").setAttribute("aria-valuenow", Math.floor((100 * job.units_done) / Math.max(1, job.units)));
  say($("report-title"), isOver ? "Final report" : "Report so far");
  const entries = [];
  if (job.solutions) entries.push(["Solutions", grouped(job.solutions), job.state === "disputed" ? "disputed: do not use this number" : job.sentence, "whole big"]);
  if (job.assurance_sentence) entries.push(["Assurance", job.assurance_sentence, undefined, "whole"]);
  entries.push(
    ["Verified by the coordinator", plural(job.units_audited, "unit"), "counted again as a whole; part of those verified"],
    ["Spot-checked", plural(job.units_spot_checked, "unit"), "a part of each counted again by others"],
    ["Recounts", `${grouped(job.recounts_agreed)} agreed, ${grouped(job.recounts_differed)} differed`],
    ["Results taken back", grouped(job.results_taken_back)],
    ["Counting", duration(job.counting_s), "summed over threads and devices"],
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
  say($("report-title"), job.proven ? "Final report" : "Report so far");
  $("certificate").href = `/api/jobs/${selected}/certificate`;
  const entries = [["Checking", duration(job.checking_s), "every answer is checked before it is believed"]];
  if (job.proven && !isBeautiful) entries.push(["Prefixes refuted", grouped(job.prefixes_refuted)]);
  const fingerprint = job.fingerprint ?? job.best_fingerprint;
  if (fingerprint) entries.push([job.proven ? "Costs" : "Costs of the best so far", costs(fingerprint), undefined, "whole"]);
  if (job.proven) entries.push(["SHA-256 of the certificate", job.certificate_sha256, undefined, "whole mono"]);
  terms($("report"), entries);
  showBoard(job);
}
function figuresProved(job) {
  const what = isEmpty(job.solution) ? "there is none" : job.what === "beautiful" ? "most beautiful solution" : "first solution";
  return [["Proved", what, undefined, "wide"], ["Certificate", `${grouped(job.certificate_bytes)} bytes`]];
}
const openQueries = (job) => ["Queries open", grouped(job.queries_open), `${grouped(job.queries_lent)} in hand`];
function figuresOfFirst(job) {
  return [["Row", job.row ? `${job.row} of ${job.n}` : "–"], openQueries(job), ["Prefixes refuted", grouped(job.prefixes_refuted)]];
}
function figuresOfBeautiful(job) {
  const { level } = job;
  if (!level) return [["Cost", "–", "not begun"], openQueries(job)];
  return [
    ["Cost", grouped(level.cost), `${level.queens_at_least} to ${plural(level.queens_of_best, "queen")} there`],
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
  say($("board-title"), job.proven ? "The solution" : "The best so far");
  if (shown.board === text) return;
  shown.board = text;
  $("board").replaceChildren(boardPicture(columns));
  say($("columns"), text);
}

function showActions(job) {
  const actions = [];
  if (me.may_control) {
    if (goesOn(job)) actions.push("pause");
    if (job.state === "paused" || job.state === "cancelled") actions.push("resume");
    if (goesOn(job) && job.units_poisoned) actions.push("retry");
    if (goesOn(job) || job.state === "paused") actions.push("cancel");
  }
  keyed($("actions"), actions, (action) => {
    const word = { pause: "Pause", resume: "Resume", retry: "Try again what is set aside", cancel: "Cancel" }[action];
    const button = element("button", action === "cancel" ? "danger" : "", word);
    button.type = "button";
    button.addEventListener("click", async () => {
      const name = selected;
      const { title } = jobNamed(name);
      const text = `Nothing of the ${title} will be handed out any more. What is counted is kept, and resuming goes on from there.`;
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
  return ["well", "badge running", worker.units_held ? `${grouped(worker.units_held)} in hand` : "idle"];
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
  const row = element("tr", "", cell("name"), element("td", "", element("span", "badge"), element("small")), cell("devices"),
    cell("number"), cell("number"), cell("number"), cell("number"), cell("number"));
  if (me.may_control) {
    row.append(element("td", "number",
      workerButton(name, "Drain", `${name} will finish what it has in hand and get nothing more until it restarts.`),
      workerButton(name, "Release", `${name} will be believed again, and its record begins anew. It has to be started again.`)));
  }
  return row;
}
function put(cell, text, small = "") {
  if (cell.firstChild.data !== text) cell.firstChild.data = text;
  say(cell.lastChild, small);
}
function updateWorker(row, name) {
  const worker = known.worker[name];
  const [who, state, devices, rate, units, verified, heat, contact, action] = row.children;
  const owner = worker.owner && worker.owner !== name ? `${worker.owner}, ` : "";
  put(who, name, owner + worker.address.replace(/:\d+$/, ""));
  const [word, className, why] = workerState(worker);
  say(state.firstChild, word);
  be(state.firstChild, className);
  say(state.lastChild, why);
  if (row.devices !== worker.devices) {
    row.devices = worker.devices;
    const shownDevices = worker.devices.slice(0, MOST_DEVICES);
    const more = worker.devices.length - shownDevices.length;
    put(devices, shownDevices.map((device) => device.name || device.id).join(", ") + (more > 0 ? ` and ${more} more` : ""),
      [...new Set(shownDevices.map((device) => device.kernel))].join(", "));
    const hottest = Math.max(...worker.devices.map((device) => device.temperature_c ?? -Infinity));
    put(heat, Number.isFinite(hottest) ? `${Math.round(hottest)} °C` : "–");
  }
  put(rate, worker.units_per_s ? rounded(worker.units_per_s) : "–");
  put(units, grouped(worker.units_done), worker.units > worker.units_done ? `${grouped(worker.units)} in force` : "");
  put(verified, worker.units ? percent(worker.units_verified, worker.units) : "–");
  updateContact(contact, worker);
  if (!action) return;
  const [drain, release] = action.children;
  drain.hidden = worker.draining || ["quarantine", "gone", "silent"].includes(word);
  release.hidden = !worker.quarantined;
}
function updateContact(cell, worker) {
  const seconds = Math.max(0, Math.round((now() - worker.seen_ms) / 1000));
  put(cell, seconds < 2 ? "now" : `${duration(seconds)} ago`);
}

function showWorkers() {
  const wanted = $("filter").value.trim().toLowerCase();
  const names = Object.keys(known.worker);
  const fits = (name) => !wanted || name.includes(wanted) || known.worker[name].devices.some((device) => device.name.toLowerCase().includes(wanted));
  const found = names.filter(fits).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  say($("workers-count"), names.length ? (found.length > MOST_ROWS ? `${grouped(MOST_ROWS)} of ${grouped(names.length)}`
    : found.length < names.length ? `${grouped(found.length)} of ${grouped(names.length)}` : grouped(names.length)) : "");
  $("workers").hidden = names.length === 0;
  $("no-workers").hidden = names.length > 0;
  keyed($("workers").tBodies[0], found.slice(0, MOST_ROWS), makeWorker, updateWorker);
}

// ---- the log, the summary

const MOST_LINES = 300;

function showLog() {
  const lines = new Map(log.map((line) => [String(line.number), line]));
  keyed($("log"), [...lines.keys()], (number) => {
    const line = lines.get(number);
    const time = element("time", "", clock(line.at_ms));
    time.dateTime = new Date(line.at_ms).toISOString();
    const mark = { warning: "Warning: ", error: "Error: " }[line.level];
    const text = element("span", "");
    if (mark) text.append(element("b", "unseen", mark));
    // Shortened as in the list of jobs.
    text.append(line.job ? line.text.replace(line.job, line.job.slice(0, 8)) : line.text);
    return element("li", line.level, time, text);
  }, () => {});
}

function showSummary() {
  const head = known.coordinator[""] ?? {};
  const running = Object.values(known.job).filter((job) => job.state === "running");
  const rate = running.reduce((sum, job) => sum + job.units_per_s, 0);
  const proofs = Object.values(known.proof).filter((job) => job.state === "running").length;
  say($("build"), head.build ?? "");
  $("trouble").hidden = !head.trouble;
  say($("trouble"), head.trouble ?? "");
  const quarantined = Object.values(known.worker).filter((worker) => worker.quarantined).length;
  const entries = [
    [running.length + proofs === 1 ? "job running" : "jobs running", grouped(running.length + proofs)],
    [head.workers === 1 ? "worker at hand" : "workers at hand", grouped(head.workers ?? 0)],
    ["units a second", rate ? rounded(rate) : "0"],
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

// ---- live

function link(state, text) {
  be($("link"), `link ${state}`);
  say($("link"), text);
}
function take(message) {
  ahead = message.now_ms ? message.now_ms - Date.now() : ahead;
  for (const [kind, things] of Object.entries(message.set)) Object.assign(known[kind], things);
  for (const [kind, names] of Object.entries(message.gone)) names.forEach((name) => delete known[kind][name]);
  if (message.log.length) log = [...message.log].reverse().concat(log).slice(0, MOST_LINES);
}

let source = null;
let heard = 0;
let retry = 0;
let isBeginning = false;
function later() {
  clearTimeout(retry);
  retry = setTimeout(begin, 2000);
}
function lost() {
  link("lost", "The coordinator does not answer; trying again");
}
function connect() {
  heard = Date.now();
  const mine = new EventSource("/api/live");
  source = mine;
  const on = (name, handle) => mine.addEventListener(name, (event) => {
    heard = Date.now();
    link("live", "Live");
    handle(JSON.parse(event.data));
  });
  on("all", (message) => {
    Object.values(known).forEach((things) => Object.keys(things).forEach((name) => delete things[name]));
    log = [];
    shown = {};
    take(message);
    // The very first state may still be empty.
    if (message.now_ms) draw();
  });
  on("change", (message) => {
    take(message);
    draw();
  });
  on("beat", () => {});
  on("over", () => location.replace("/sign-in"));
  mine.addEventListener("error", () => {
    lost();
    // A refused connection does not reconnect by itself.
    if (mine.readyState === EventSource.CLOSED) later();
  });
}
/** Requests the user and reconnects. Retries until it succeeds, one attempt at a time. */
async function begin() {
  if (isBeginning) return;
  isBeginning = true;
  clearTimeout(retry);
  heard = Date.now();
  // The old source would reconnect by itself.
  source?.close();
  try {
    me = await ask("/api/me", { signal: AbortSignal.timeout(10_000) });
    say($("me"), me.until_ms ? `${me.name} · ${me.role}` : "everybody on this machine");
    $("sign-out").hidden = !me.until_ms;
    if (me.may_control && !$("workers-head").querySelector(".action")) {
      $("workers-head").append(element("th", "action", element("span", "unseen", "Action")));
    }
    connect();
  } catch {
    lost();
    later();
  } finally {
    isBeginning = false;
  }
}
// Reconnects if no event arrives for 15 s.
setInterval(() => { if (Date.now() - heard > 15_000) begin(); }, 5000);
$("sign-out").addEventListener("click", async () => {
  await post("/sign-out");
  location.replace("/sign-in");
});
link("", "Connecting");
begin();
