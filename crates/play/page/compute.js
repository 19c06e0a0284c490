// Requests to the program nqueens-play, which workers run so that the page stays responsive.

const compiled = fetch(new URL("nqueens-play.wasm", import.meta.url)).then(async (response) => {
  if (!response.ok) throw new Error(`nqueens-play.wasm: status ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer());
});

/** A line of requests of which only the latest matters: a new request abandons the one before. */
export class Latest {
  constructor() {
    this.worker = null;
    this.id = 0;
    this.reply = null;
  }

  /** Returns the answer, or null if the request was abandoned or took longer than `limit_s`. */
  async ask(request, limit_s = Infinity) {
    this.abandon();
    const id = ++this.id;
    const program = await compiled;
    if (id !== this.id) return null;
    if (!this.worker) {
      this.worker = new Worker(new URL("worker.js", import.meta.url));
      this.worker.postMessage({ program });
      this.worker.onmessage = ({ data }) => {
        const reply = this.reply;
        if (data.id !== this.id || !reply) return;
        this.reply = null;
        reply(data.answer);
      };
    }
    const answer = new Promise((resolve) => { this.reply = resolve; });
    this.worker.postMessage({ id, request });
    const timer = limit_s < Infinity ? setTimeout(() => { if (id === this.id) this.abandon(); }, 1000 * limit_s) : 0;
    const found = await answer;
    clearTimeout(timer);
    return id === this.id ? found : null;
  }

  /** Abandons the request under way. */
  abandon() {
    if (!this.reply) return;
    const reply = this.reply;
    this.reply = null;
    this.worker.terminate();
    this.worker = null;
    reply(null);
  }
}
