// What the clients in JavaScript share: the steps, and one line of JSON for each answer.
import { once } from "node:events";
import { readFileSync } from "node:fs";

const all = JSON.parse(
  readFileSync(new URL("conversation.json", import.meta.url), "utf8"),
).steps;

// Before the step that CONVERSATION_PAUSE counts, waits for a line on standard input.
export async function* steps() {
  for (const [number, step] of all.entries()) {
    if (String(number) === process.env.CONVERSATION_PAUSE) {
      await once(process.stdin, "data");
      process.stdin.pause();
    }
    yield step;
  }
}

export function say(answer) {
  process.stdout.write(JSON.stringify(answer) + "\n");
}

// Both SDKs have the same two methods.
export async function converse(client) {
  for await (const { tool, arguments: args } of steps()) {
    if (tool) say({ result: await client.callTool({ name: tool, arguments: args }) });
    else say({ tools: (await client.listTools()).tools });
  }
}

// What a StdioClientTransport is made with, for "stdio:PROGRAM"; null for another URL.
export function programOf(url) {
  if (!url.startsWith("stdio:")) return null;
  return { command: url.slice("stdio:".length), args: ["--stdio"], env: process.env };
}
