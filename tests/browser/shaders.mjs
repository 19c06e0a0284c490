// Every variant of the shaders, compiled by Tint, the WGSL compiler of Chromium, for SwiftShader. They are not run.
//
//   node shaders.mjs
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { chromium } from "playwright-core";

const read = (name) => readFileSync(new URL(`../../shaders/${name}.wgsl`, import.meta.url), "utf8");
const columnSets = ["memory", "lists", "programs", "planes", "counts", "steps"].map((part) => read(`column_sets/${part}`)).join("");

const variants = [
  { code: read("schedule"), entryPoint: "schedule", constants: {} },
  { code: read("expand"), entryPoint: "expand", constants: {} },
  // Not those with 128 planes, which need more workgroup memory than SwiftShader has.
  { code: columnSets, entryPoint: "count_sets", constants: { LANES: 64, PLANES: 120, MASK_PLANES: 28 } },
  { code: columnSets, entryPoint: "count_sets", constants: { LANES: 32, PLANES: 120, MASK_PLANES: 28 } },
  { code: columnSets, entryPoint: "count_sets", constants: { LANES: 32, PLANES: 120, MASK_PLANES: 24 } },
  { code: columnSets, entryPoint: "count_sets", constants: { LANES: 32, PLANES: 120, MASK_PLANES: 20 } },
];
for (const DEPTH of [4, 11, 16])
  for (const GATED of [0, 1])
    for (const GENERAL of [0, 1])
      for (const LOOK_AHEAD of [0, 1])
        variants.push({ code: read("search"), entryPoint: "search", constants: { DEPTH, GATED, GENERAL, LOOK_AHEAD } });

/** Compiles the variants in the page, and returns the name of the adapter and what went wrong. */
async function compile(variants) {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) return { errors: ["no adapter"] };
  const { maxStorageBuffersPerShaderStage, maxComputeWorkgroupStorageSize } = adapter.limits;
  const device = await adapter.requestDevice({ requiredLimits: { maxStorageBuffersPerShaderStage, maxComputeWorkgroupStorageSize } });
  const errors = [];
  for (const { code, entryPoint, constants } of variants) {
    const name = `${entryPoint} ${JSON.stringify(constants)}`;
    const module = device.createShaderModule({ code });
    const { messages } = await module.getCompilationInfo();
    for (const { type, lineNum, message } of messages) errors.push(`${name}: ${type} in line ${lineNum}: ${message}`);
    const compute = { module, entryPoint, constants };
    await device.createComputePipelineAsync({ layout: "auto", compute }).catch((error) => errors.push(`${name}: ${error.message}`));
  }
  return { adapter: `${adapter.info.vendor} ${adapter.info.architecture} ${adapter.info.description}`, errors };
}

// WebGPU is there in secure contexts only, such as pages of this machine.
const server = createServer((_, response) => response.setHeader("content-type", "text/html").end("<!doctype html><title>shaders</title>"));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  // The watchdog would end the process while it compiles a shader for long.
  args: ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--ignore-gpu-blocklist", "--disable-gpu-watchdog"],
});
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(300_000);
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const { adapter, errors } = await page.evaluate(compile, variants);
  assert.deepEqual(errors, []);
  console.log(`Tint accepts ${variants.length} variants of the shaders for ${adapter.trim()}`);
} finally {
  await browser.close();
  server.close();
}
