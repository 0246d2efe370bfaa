// The conversation by the official SDK for TypeScript 2.x.
//
// usage: typescript_sdk2.mjs URL auto|legacy
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { converse, say } from "./conversation.mjs";

const [, , url, mode] = process.argv;
const transport = new StreamableHTTPClientTransport(new URL(url));
const client = new Client(
  { name: "typescript-2", version: "1" },
  { versionNegotiation: { mode } },
);

client.onerror = (error) => console.error(error);
await client.connect(transport);
say({ protocol: client.getNegotiatedProtocolVersion() });
await converse(client);
client.onerror = undefined; // ending the idle stream is told as one
if (mode === "legacy") await transport.terminateSession();
await client.close();
