// The calls of the page to the coordinator: JSON in, JSON or binary frames out.

/** An answer that is not a success; `status` is 0 if there was none. */
export class CallError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function call(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", credentials: "omit", ...options });
  } catch {
    throw new CallError(0, "the coordinator cannot be reached");
  }
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  throw new CallError(response.status, error ?? `status ${response.status}`);
}

const post = (path, body, session) =>
  call(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(session ? { Authorization: `Bearer ${session}` } : {}) },
    body: JSON.stringify(body),
  });

const json = (response) => response.json();

/** Splits a frame into its JSON and the data behind it, as 32-bit words. */
async function frame(response) {
  const buffer = await response.arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { head, words: new Uint32Array(buffer, 4 + length), bytes: buffer.byteLength };
}

/** Returns a function that takes the next words of a frame. */
function reader(words) {
  let at = 0;
  return (count) => words.subarray(at, (at += count));
}

const LOWER_ROW = 6, UPPER_ROW = 4, PREFIX = 6, SEGMENT = 4;

function tablesOf(head, take) {
  return { ...head, lowerRows: take(head.lower_rows * LOWER_ROW), upperRows: take(head.upper_rows * UPPER_ROW) };
}

const batchesOf = (heads, take) =>
  heads.map((head) => ({ ...head, prefixWords: take(head.prefixes * PREFIX), segmentWords: take(head.segments * SEGMENT) }));

export const campaign = () => call("api/campaign").then(json);
export const openSession = (token) => post("api/session", token ? { token } : {}).then(json);
export const sync = (session, body) => post("api/sync", body, session).then(json);
export const fail = (session, body) => post("api/fail", body, session).then(json);
export const result = (session, body) => post("api/result", body, session).then(json);

export async function tables(session, unit) {
  const { head, words, bytes } = await frame(await post("api/tables", unit, session));
  return { ...tablesOf(head, reader(words)), bytes };
}

export async function batches(session, unit) {
  const { head, words, bytes } = await frame(await post("api/unit", unit, session));
  return { batches: batchesOf(head.batches, reader(words)), bytes };
}

export async function benchmarkBoard(n) {
  const { head, words, bytes } = await frame(await call(`api/benchmark/${n}`));
  const take = reader(words);
  const tables = tablesOf(head.tables, take);
  return { n, solutions: BigInt(head.solutions), tables, batches: batchesOf(head.batches, take), bytes };
}

/** Returns words as base64 of their bytes in memory. */
export function base64(words) {
  const bytes = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}
