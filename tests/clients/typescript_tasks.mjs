// Tasks by the official client library for them, @modelcontextprotocol/ext-tasks, over
// the official SDK: one line of JSON for each outcome.
//
// usage: typescript_tasks.mjs URL
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client";
import { say } from "./conversation.mjs";

const [, , url] = process.argv;
const info = { name: "typescript-tasks", version: "1" };
const able = { elicitation: {} };
const protocolVersion = "2026-07-28";
let id = 0;

// The SDK's own client refuses results that are tasks; the library wants this of its host.
async function rawDispatch(request) {
  const { name, taskId } = request.params;
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": protocolVersion,
      "Mcp-Method": request.method,
      "Mcp-Name": name ?? taskId,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: `raw-${++id}`, ...request }),
  });
  const text = await response.text();
  const streamed = response.headers.get("content-type").startsWith("text/event-stream");
  const last = streamed ? text.match(/^data: ?(\{.*)$/gm).at(-1).replace(/^data: ?/, "") : text;
  const { result, error } = JSON.parse(last);
  return error ? { kind: "error", error } : { kind: "result", result };
}

const client = new Client(info, { versionNegotiation: { mode: "auto" }, capabilities: able });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const asked = [];
const session = createTaskSessionFromClient(client, {
  endpointId: "test",
  rawDispatch,
  v2RequestFraming: { protocolVersion, clientInfo: info, clientCapabilities: able },
  onInputRequest: async (request) => {
    asked.push(request.params.message);
    return { action: "accept", content: { confirm: true } };
  },
});

async function settle(tool, args, more = {}) {
  const execution = await session.callTool(tool, args);
  if (execution.kind !== "task") throw new Error(`${tool} was no task`);
  const { outcome } = await execution.settle();
  const { status, result, error } = outcome;
  say({ status, result, code: error?.code, ...more });
}

await settle("slow_compute", { seconds: 1 });
await settle("failing_job", {});
await settle("protocol_error_job", {});
await settle("confirm_delete", { filename: "x" });
asked.length = 0;
await settle("multi_input", {}, { asked });
const endless = await session.callTool("slow_compute", { seconds: 90 });
await endless.cancel();
say({ status: (await endless.result()).status });
await session.close();
await client.close();
