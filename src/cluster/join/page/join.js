// The page: what is being counted, the buttons, and the Worker that counts.
import { drawPicture } from "./picture.js";
import { campaign, CallError, openSession } from "./protocol.js";

const element = (id) => document.getElementById(id);
const LOCK = "nqueens-join", STORE = "nqueens-join-session", CAMPAIGN_MS = 5_000;

// Tests count on software drivers, which are too slow for anything else.
const allowSoftware = new URLSearchParams(location.search).has("software");

/** Texts of the storage of this browser, which may be blocked. */
const stored = {
  get: () => { try { return JSON.parse(localStorage.getItem(STORE)); } catch { return null; } },
  set: (value) => { try { localStorage.setItem(STORE, JSON.stringify(value)); } catch { /* It is forgotten with the tab. */ } },
  remove: () => { try { localStorage.removeItem(STORE); } catch { /* It was never stored. */ } },
};

const token = location.hash.startsWith("#nqt1.") ? location.hash.slice(1) : null;
const number = (value) => value.toLocaleString("en").replaceAll(",", "\u202f");

let session = null, driver = null, boot = "", unlock = () => {}, gpuName = "";

function notice(text) {
  element("notice").textContent = text;
  element("notice").hidden = text === "";
}
const state = (text) => { if (element("state").textContent !== text) element("state").textContent = text; };

/** Returns the key under which a session of this link is stored, without the secret of the token. */
const linkId = token ? token.slice(0, 40) : "guest";

async function newSession() {
  const known = stored.get();
  if (known?.link === linkId) return known.session;
  const opened = await openSession(token);
  stored.set({ link: linkId, session: opened });
  return opened;
}

function show({ worker, guest, owner }) {
  element("worker").textContent = guest ? "a guest" : `${worker} (${owner})`;
}

function setCounting(counting) {
  const hadFocus = ["start", "pause", "stop"].includes(document.activeElement?.id);
  element("start").disabled = counting;
  element("pause").disabled = element("stop").disabled = !counting;
  element("measure").disabled = counting;
  // A button that is disabled loses the focus.
  if (hadFocus) element(counting ? "stop" : "start").focus();
  if (!counting) setPaused(false);
}

function setPaused(paused) {
  element("pause").setAttribute("aria-pressed", String(paused));
  element("pause").textContent = paused ? "Go on" : "Pause";
}

/** Returns whether this tab may count: one tab of a browser at a time. */
function lock() {
  if (!navigator.locks) return Promise.resolve(true);
  return new Promise((resolve) => {
    navigator.locks.request(LOCK, { ifAvailable: true }, (held) => {
      resolve(held !== null);
      return held && new Promise((release) => { unlock = release; });
    });
  });
}

const share = () => Number(element("share").value) / 100;

function newDriver(onMessage) {
  const worker = new Worker("driver.js", { type: "module" });
  worker.addEventListener("message", ({ data }) => onMessage(data));
  const broken = { type: "ended", reason: "The page could not be loaded completely. Reload it." };
  worker.addEventListener("error", () => onMessage(broken));
  return worker;
}

async function start() {
  notice("");
  setCounting(true);
  state("Starting…");
  try {
    if (!isSecureContext)
      throw new Error("This address is not secure, so the browser does not offer its GPU. Open the page over https.");
    if (!(await lock())) throw new Error("Another tab of this browser is counting already.");
    session = await newSession();
    show(session);
    boot = String(Math.floor(Math.random() * 2 ** 52));
    driver = newDriver(onMessage);
    driver.postMessage({ type: "start", session: session.session, boot, share: share(), allowSoftware });
  } catch (error) {
    const isUnknown = error instanceof CallError && error.status === 401 && !token;
    end(isUnknown ? "The coordinator does not know this page. Reload it." : error.message);
  }
}

function end(reason) {
  driver?.terminate();
  driver = null;
  leave();
  unlock();
  setCounting(false);
  state("Not counting.");
  notice(reason ?? "");
}

/** Tells the coordinator that the units of this page are free again. */
function leave() {
  if (session && boot) {
    const body = new Blob([JSON.stringify({ session: session.session, boot })], { type: "application/json" });
    navigator.sendBeacon?.("api/leave", body);
  }
  boot = "";
}

const STATES = {
  ready: () => "Ready; asking for work…",
  counting: () => (document.hidden ? "Counting in the background." : "Counting."),
  idle: () => "Nothing to count at the moment; asking again soon.",
  paused: () => "Paused.",
  offline: ({ reason }) => `Waiting: ${reason}.`,
};

function onMessage(message) {
  switch (message.type) {
    case "state":
      if (message.gpu) element("gpu").textContent = gpuName = message.gpu;
      state(STATES[message.state](message));
      break;
    case "counted":
      if (message.units !== undefined) {
        element("units").textContent = number(message.units);
        element("confirmed").textContent = number(message.confirmed);
      }
      break;
    case "session":
      // It has ended, for example because the day has; a guest gets a new one.
      stored.remove();
      end("");
      if (token) notice("This link is no longer valid. Ask for a new one.");
      else start();
      break;
    case "ended":
      end(message.reason);
      break;
  }
}

function pause() {
  const paused = element("pause").getAttribute("aria-pressed") !== "true";
  setPaused(paused);
  driver?.postMessage({ type: "pause", paused });
}

function stop() {
  state("Stopping…");
  driver?.postMessage({ type: "stop" });
  // If the GPU does not answer, the Worker does not either.
  const stopped = driver;
  setTimeout(() => { if (driver === stopped) end(""); }, 1_000);
}

function job({ title, units, done }) {
  const item = document.createElement("li");
  const percent = (100 * done / Math.max(units, 1)).toFixed(1);
  const label = document.createElement("label");
  const bar = document.createElement("progress");
  label.textContent = `${title}: ${number(done)} of ${number(units)} parts, ${percent} %`;
  bar.max = Math.max(units, 1);
  bar.value = done;
  bar.setAttribute("aria-label", title);
  item.append(label, bar);
  return item;
}

async function showCampaign() {
  try {
    const { jobs, most_guests } = await campaign();
    const none = document.createElement("li");
    none.textContent = "Nothing is being counted now. The page waits for work.";
    element("jobs").replaceChildren(...(jobs.length ? jobs.map(job) : [none]));
    const closed = !token && most_guests === 0 && !stored.get();
    if (closed && !driver) notice("This coordinator admits no guests: you need a link with a token.");
    if (!driver) element("start").disabled = closed;
  } catch (error) {
    if (!driver) state(`Waiting: ${error.message}.`);
  }
}

let measured = null;

function measure() {
  const n = Number(element("size").value);
  element("measure").disabled = element("start").disabled = true;
  element("share-result").hidden = true;
  element("measured").textContent = "Measuring…";
  const worker = newDriver(({ type, line, reason, round, rounds }) => {
    if (type === "benchmark" && round !== undefined) {
      element("measured").textContent = round === 0 ? "Warming up…" : `Round ${round} of ${rounds}…`;
      return;
    }
    worker.terminate();
    element("measure").disabled = element("start").disabled = false;
    measured = line ?? null;
    element("share-result").hidden = !line;
    element("measured").textContent = line ? sentence(line) : (reason ?? "It could not be measured.");
  });
  worker.postMessage({ type: "benchmark", n, allowSoftware });
}

/** Returns a number with three significant digits and a word: 1.23 billion. */
function rounded(value) {
  const words = [[1e12, " trillion"], [1e9, " billion"], [1e6, " million"], [1e3, " thousand"]];
  const [size, word] = words.find(([size]) => value >= size) ?? [1, ""];
  return `${Number((value / size).toPrecision(3))}${word}`;
}

function sentence({ n, machine, contestants: [result] }) {
  const [{ name, driver }] = machine.devices;
  return `${name}: ${rounded(result.solutions_per_s)} solutions a second (n = ${n}, ${driver}).`;
}

function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const fileName = (kind) => `nqueens-bench-${measured.n}.${kind}`;

element("start").addEventListener("click", start);
element("pause").addEventListener("click", pause);
element("stop").addEventListener("click", stop);
element("measure").addEventListener("click", measure);
element("save-json").addEventListener("click", () => {
  save(fileName("json"), new Blob([`${JSON.stringify(measured)}\n`], { type: "application/json" }));
});
element("save-picture").addEventListener("click", async () => save(fileName("png"), await drawPicture(measured, rounded)));
element("share").addEventListener("input", () => {
  element("share-text").textContent = `${element("share").value} %`;
  driver?.postMessage({ type: "share", share: share() });
});
addEventListener("pagehide", leave);
addEventListener("pageshow", ({ persisted }) => {
  if (persisted && driver) end("The page was asleep. Press the button to go on.");
});

await showCampaign();
setInterval(() => { if (!document.hidden) showCampaign(); }, CAMPAIGN_MS);
// For tests.
globalThis.nqueens = { message: (message) => driver?.postMessage(message), measured: () => measured };
