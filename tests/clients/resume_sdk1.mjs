// A call whose connection breaks before its answer, by the official SDK for TypeScript 1.x.
//
// usage: resume_sdk1.mjs URL CODE
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { say } from "./conversation.mjs";

const [url, code] = process.argv.slice(2);
const transport = new StreamableHTTPClientTransport(new URL(url));
const client = new Client({ name: "resumes", version: "1" });
const told = [];

client.onerror = () => {}; // the broken connection is told as one
await client.connect(transport);
const result = await client.callTool(
  { name: "run_python", arguments: { code } },
  undefined,
  { onprogress: (progress) => told.push(progress.progress), timeout: 60000 },
);
say({ text: result.content[0].text, told });
await client.close();
