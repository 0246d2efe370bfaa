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
