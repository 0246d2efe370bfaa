// The conversation by the Inspector's CLI: one process, and so one session, a step.
//
// usage: inspector.mjs URL legacy|modern
import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { say, steps } from "./conversation.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const cli = realpathSync(
  here("node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js"),
);
const env = { ...process.env, NODE_COMPILE_CACHE: here("node_modules/.compiled") };
const [, , url, era] = process.argv;
const common = [cli, "--server-url", url, "--transport", "http", "--protocol-era", era];

// An answer that is a tool's error is printed like any other, with exit status 5.
function inspect(...args) {
  const run = spawnSync(process.execPath, [...common, "--format", "json", ...args], {
    encoding: "utf8",
    env,
  });
  if (run.status !== 0 && run.status !== 5)
    throw new Error(`exit status ${run.status}: ${run.stdout}${run.stderr}`);
  const { result, schemaFindings } = JSON.parse(run.stdout);
  if (schemaFindings) throw new Error(`the Inspector warns: ${run.stderr}`);
  return result;
}

for await (const { tool, arguments: args } of steps()) {
  if (!tool) {
    // strict: also fails if a schema is one that some model providers refuse.
    say({ tools: inspect("--method", "tools/list", "--strict").tools });
    continue;
  }
  const call = ["--method", "tools/call", "--tool-name", tool];
  say({ result: inspect(...call, "--tool-args-json", JSON.stringify(args)) });
}
