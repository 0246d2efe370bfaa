// What the clients in JavaScript share: the steps, and one line of JSON for each answer.
import { readFileSync } from "node:fs";

export const steps = JSON.parse(
  readFileSync(new URL("conversation.json", import.meta.url), "utf8"),
).steps;

export function say(answer) {
  process.stdout.write(JSON.stringify(answer) + "\n");
}

// Both SDKs have the same two methods.
export async function converse(client) {
  for (const { tool, arguments: args } of steps) {
    if (tool) say({ result: await client.callTool({ name: tool, arguments: args }) });
    else say({ tools: (await client.listTools()).tools });
  }
}

// What a StdioClientTransport is made with, for "stdio:PROGRAM"; null for another URL.
export function programOf(url) {
  if (!url.startsWith("stdio:")) return null;
  return { command: url.slice("stdio:".length), args: ["--stdio"], env: process.env };
}
