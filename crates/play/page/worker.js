// Runs the program nqueens-play, which is compiled for WASI, once for each request: the request is
// its standard input and the answer its standard output.
"use strict";
const ENDED = Symbol("the program has ended");
const [SUCCESS, BAD_FILE] = [0, 8];
let program = null;

/** Runs the program. Returns what it writes to its standard output. */
function run(input) {
  const request = new TextEncoder().encode(input);
  let read = 0;
  const written = { 1: [], 2: [] };
  let memory;
  const view = () => new DataView(memory.buffer);
  /** Calls `transfer` with each buffer of a list, until it returns fewer bytes than the buffer has. */
  const buffers = (list, count, size, transfer) => {
    let total = 0;
    for (let at = list; at < list + 8 * count; at += 8) {
      const [start, length] = [view().getUint32(at, true), view().getUint32(at + 4, true)];
      const moved = transfer(new Uint8Array(memory.buffer, start, length));
      total += moved;
      if (moved < length) break;
    }
    view().setUint32(size, total, true);
    return SUCCESS;
  };
  const wasi = {
    environ_sizes_get(count, size) {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return SUCCESS;
    },
    environ_get: () => SUCCESS,
    fd_read: (file, list, count, size) => file !== 0 ? BAD_FILE : buffers(list, count, size, (buffer) => {
      const part = request.subarray(read, read + buffer.length);
      buffer.set(part);
      read += part.length;
      return part.length;
    }),
    fd_write: (file, list, count, size) => !written[file] ? BAD_FILE : buffers(list, count, size, (buffer) => {
      written[file].push(buffer.slice());
      return buffer.length;
    }),
    proc_exit() { throw ENDED; },
  };
  const text = (parts) => {
    const decoder = new TextDecoder();
    return parts.map((part) => decoder.decode(part, { stream: true })).join("") + decoder.decode();
  };
  try {
    const instance = new WebAssembly.Instance(program, { wasi_snapshot_preview1: wasi });
    memory = instance.exports.memory;
    instance.exports._start();
  } catch (error) {
    if (error !== ENDED) throw new Error(text(written[2]).trim() || String(error));
  }
  return text(written[1]);
}

onmessage = ({ data }) => {
  if (data.program) {
    program = data.program;
    return;
  }
  try {
    postMessage({ id: data.id, answer: JSON.parse(run(JSON.stringify(data.request))) });
  } catch (error) {
    postMessage({ id: data.id, answer: { error: String(error.message ?? error) } });
  }
};
